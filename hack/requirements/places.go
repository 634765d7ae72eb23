package main

import (
	"bytes"
	"go/ast"
	"go/token"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// places are the comments of a file that stand at a test, and lines at which a subtest begins.
type places struct {
	set    *token.FileSet
	source [][]byte
	docs   map[*ast.CommentGroup]string // the test function that a comment documents
	lines  map[int]string               // TestName/name of the subtest
}

// placesOf finds the tests of a file that can be cited.
func placesOf(set *token.FileSet, file *ast.File, source []byte) places {
	p := places{set: set, source: bytes.Split(source, []byte("\n")), docs: map[*ast.CommentGroup]string{},
		lines: map[int]string{}}
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && isTest(function) {
			p.docs[function.Doc] = function.Name.Name
			w := walk{places: &p, body: function.Body}
			w.block(function.Body, testName{known: true, text: function.Name.Name})
		}
	}
	return p
}

// of returns the test that a comment stands at, empty where there is none.
func (p places) of(group *ast.CommentGroup) string {
	if test := p.docs[group]; test != "" {
		return test
	}
	line := p.set.Position(group.Pos()).Line
	if p.isAlone(group) {
		line = p.set.Position(group.End()).Line + 1
	}
	return p.lines[line]
}

// isAlone reports whether nothing but space stands before a comment in its line.
func (p places) isAlone(group *ast.CommentGroup) bool {
	position := p.set.Position(group.Pos())
	return len(bytes.TrimSpace(p.source[position.Line-1][:position.Column-1])) == 0
}

// isTest reports whether `go test` runs the function and it can fail: a benchmark proves nothing.
func isTest(function *ast.FuncDecl) bool {
	for _, prefix := range []string{"Test", "Fuzz"} {
		rest, ok := strings.CutPrefix(function.Name.Name, prefix)
		first, _ := utf8.DecodeRuneInString(rest)
		if ok && function.Recv == nil && function.Body != nil && function.Name.Name != "TestMain" && !unicode.IsLower(first) {
			return true
		}
	}
	return false
}

// testName is the name of a test or subtest. Below a subtest whose name only the run tells, nothing is added.
type testName struct {
	text  string
	known bool
}

func (n testName) with(part string, known bool) testName {
	if !n.known || !known {
		return testName{text: n.text}
	}
	return testName{text: n.text + "/" + part, known: true}
}

// walk goes through one test function and notes where its subtests begin.
type walk struct {
	*places
	body *ast.BlockStmt
}

// block visits all below a node whose tests have the name, but what is in a subtest of its own.
func (w walk) block(node ast.Node, in testName) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			w.table(n, in)
		case *ast.CallExpr:
			if argument, ok := runs(n); ok {
				sub := in.with(literal(argument))
				w.note(n, sub)
				w.block(n.Args[1], sub)
				return false
			}
		}
		return true
	})
}

func (w walk) note(node ast.Node, at testName) { w.lines[w.set.Position(node.Pos()).Line] = at.text }

// runs returns the name that t.Run is called with.
func runs(call *ast.CallExpr) (argument ast.Expr, ok bool) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != "Run" || len(call.Args) != 2 {
		return nil, false
	}
	receiver, ok := selector.X.(*ast.Ident)
	return call.Args[0], ok && receiver.Name == "t"
}

// table notes the rows of the table that a loop goes through, if each is a subtest.
func (w walk) table(loop *ast.RangeStmt, in testName) {
	argument := firstRun(loop.Body)
	if argument == nil {
		return
	}
	for _, table := range w.tables(loop.X) {
		for _, element := range table.Elts {
			w.note(element, in.with(rowName(loop, table, element, argument)))
		}
	}
}

func firstRun(body *ast.BlockStmt) (argument ast.Expr) {
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && argument == nil {
			if a, ok := runs(call); ok {
				argument = a
			}
		}
		return argument == nil
	})
	return argument
}

// tables returns the literals that a loop's expression names, directly or by a variable of this test.
func (w walk) tables(over ast.Expr) (found []*ast.CompositeLit) {
	ast.Inspect(over, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			found = append(found, n)
			return false
		case *ast.Ident:
			found = append(found, w.variable(n.Name)...)
		}
		return true
	})
	return found
}

// variable returns the literals that a variable of this test is made with.
func (w walk) variable(name string) (found []*ast.CompositeLit) {
	note := func(left, right ast.Expr) {
		identifier, named := left.(*ast.Ident)
		table, isTable := right.(*ast.CompositeLit)
		if named && isTable && identifier.Name == name {
			found = append(found, table)
		}
	}
	ast.Inspect(w.body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i := range min(len(n.Lhs), len(n.Rhs)) {
				note(n.Lhs[i], n.Rhs[i])
			}
		case *ast.ValueSpec:
			for i := range min(len(n.Names), len(n.Values)) {
				note(n.Names[i], n.Values[i])
			}
		}
		return true
	})
	return found
}

// rowName returns what t.Run calls a row, if the source says it: its key, or a field of it.
func rowName(loop *ast.RangeStmt, table *ast.CompositeLit, row, argument ast.Expr) (text string, known bool) {
	keyed, isKeyed := row.(*ast.KeyValueExpr)
	if isKeyed && isNamed(loop.Key, argument) {
		return literal(keyed.Key)
	}
	field, ok := argument.(*ast.SelectorExpr)
	if !ok || !isNamed(loop.Value, field.X) {
		if isNamed(loop.Value, argument) && !isKeyed {
			return literal(row)
		}
		return "", false
	}
	if isKeyed {
		row = keyed.Value
	}
	fields, ok := row.(*ast.CompositeLit)
	if !ok {
		return "", false
	}
	for i, value := range fields.Elts {
		if pair, ok := value.(*ast.KeyValueExpr); ok {
			if isNamed(pair.Key, field.Sel) {
				return literal(pair.Value)
			}
		} else if fieldName(table, i) == field.Sel.Name {
			return literal(value)
		}
	}
	return "", false
}

// fieldName returns the name of a field by its place, if the table's type is written where the table is.
func fieldName(table *ast.CompositeLit, place int) string {
	var element ast.Expr
	switch of := table.Type.(type) {
	case *ast.ArrayType:
		element = of.Elt
	case *ast.MapType:
		element = of.Value
	}
	if structure, ok := element.(*ast.StructType); ok {
		var names []string
		for _, field := range structure.Fields.List {
			for _, name := range field.Names {
				names = append(names, name.Name)
			}
		}
		if place < len(names) {
			return names[place]
		}
	}
	return ""
}

// isNamed reports whether both are the same identifier.
func isNamed(a, b ast.Expr) bool {
	left, ok := a.(*ast.Ident)
	right, too := b.(*ast.Ident)
	return ok && too && left.Name == right.Name
}

// literal returns the text of a string literal.
func literal(expression ast.Expr) (text string, ok bool) {
	basic, ok := expression.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(basic.Value)
	return text, err == nil
}
