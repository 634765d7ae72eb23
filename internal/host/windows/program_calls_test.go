//go:build !windows

package windows

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"testing"
)

// call is a call of a Windows function.
type call struct {
	function  string
	arguments int
}

// readWrappers returns the calls in golang.org/x/sys/windows, by the Go function that contains the call:
//
//	procCloseHandle = modkernel32.NewProc("CloseHandle")
//	func CloseHandle(handle Handle) (err error) {
//		r1, _, e1 := syscall.SyscallN(procCloseHandle.Addr(), uintptr(handle))
func readWrappers(t *testing.T, dir string) map[string]call {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, "zsyscall_windows.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if found, ok := spec.Values[0].(*ast.CallExpr); ok && types.ExprString(found.Fun) != "" {
				if literal, ok := found.Args[0].(*ast.BasicLit); ok && strings.HasSuffix(types.ExprString(found.Fun), ".NewProc") {
					names[spec.Names[0].Name] = strings.Trim(literal.Value, `"`)
				}
			}
		}
		return true
	})
	wrappers := map[string]call{}
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(function, func(node ast.Node) bool {
			if found, ok := node.(*ast.CallExpr); ok && types.ExprString(found.Fun) == "syscall.SyscallN" {
				name := names[strings.TrimSuffix(types.ExprString(found.Args[0]), ".Addr()")]
				wrappers[function.Name.Name] = call{name, len(found.Args) - 1}
			}
			return true
		})
	}
	if len(wrappers) == 0 {
		t.Fatal("found no calls in golang.org/x/sys/windows")
	}
	return wrappers
}

// addCalls adds the direct calls of a package: calls of the form NewProc("name").Call(arguments), possibly through a
// variable, and calls of functions with the parameters name and arguments.
func (p program) addCalls(t *testing.T, s source) {
	t.Helper()
	variables := map[types.Object]string{}
	bind := func(to []ast.Expr, from []ast.Expr) {
		for i, expression := range from {
			if name := s.procedureName(expression); name != "" {
				p.calls[name] = append(p.calls[name], []int{}...)
				if identifier, ok := to[i].(*ast.Ident); ok {
					variables[s.resolveObject(identifier)] = name
				}
			}
		}
	}
	s.inspectFiles(func(node ast.Node) {
		switch node := node.(type) {
		case *ast.AssignStmt:
			bind(node.Lhs, node.Rhs)
		case *ast.ValueSpec:
			var to []ast.Expr
			for _, name := range node.Names {
				to = append(to, name)
			}
			bind(to, node.Values)
		}
	})
	s.inspectFiles(func(node ast.Node) {
		use, ok := node.(*ast.CallExpr)
		if !ok || use.Ellipsis.IsValid() {
			return
		}
		if selector, ok := use.Fun.(*ast.SelectorExpr); ok && selector.Sel.Name == "Call" && isProcedure(s.Types[selector.X].Type) {
			name := s.procedureName(selector.X)
			if identifier, ok := selector.X.(*ast.Ident); ok {
				name = variables[s.resolveObject(identifier)]
			}
			p.calls[name] = append(p.calls[name], len(use.Args))
			return
		}
		if signature, ok := s.Types[use.Fun].Type.(*types.Signature); ok && hasArgumentParameters(signature) {
			name := constant.StringVal(s.Types[use.Args[0]].Value)
			p.calls[name] = append(p.calls[name], len(use.Args)-1)
		}
	})
}

func (s source) inspectFiles(visit func(ast.Node)) {
	for _, file := range s.files {
		ast.Inspect(file, func(node ast.Node) bool { visit(node); return true })
	}
}

func (s source) resolveObject(of *ast.Ident) types.Object {
	if defined := s.Defs[of]; defined != nil {
		return defined
	}
	return s.Uses[of]
}

// procedureName returns the Windows function that an expression resolves by name, or "". Such an expression is a call
// with one constant text that returns a procedure.
func (s source) procedureName(expression ast.Expr) string {
	use, ok := expression.(*ast.CallExpr)
	if !ok || len(use.Args) != 1 || s.Types[use.Args[0]].Value == nil {
		return ""
	}
	result := s.Types[use].Type
	if list, ok := result.(*types.Tuple); ok && list.Len() > 0 {
		result = list.At(0).Type()
	}
	if !isProcedure(result) {
		return ""
	}
	return constant.StringVal(s.Types[use.Args[0]].Value)
}

func isProcedure(of types.Type) bool {
	return of != nil && of.String() == "*"+apiPackage+".LazyProc"
}

// hasArgumentParameters reports whether a function has the parameters (string, ...uintptr).
func hasArgumentParameters(of *types.Signature) bool {
	return of.Variadic() && of.Params().Len() == 2 && of.Params().At(0).Type() == types.Typ[types.String] &&
		of.Params().At(1).Type().String() == "[]uintptr"
}
