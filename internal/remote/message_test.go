package remote_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An Error prefixes its message with the host, so the message must not repeat the host.
func TestError_NamesHostOnlyOnce(t *testing.T) {
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files, count := token.NewFileSet(), 0
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			makes, mentions := hostsIn(declaration)
			if count += makes; makes == 0 {
				continue
			}
			for _, mention := range mentions {
				t.Errorf("%s: the address of the host goes into the field Host, not into a text", files.Position(mention))
			}
		}
	}
	if count < 20 {
		t.Fatalf("%d errors are made", count)
	}
}

// hostsIn counts the Errors created in a declaration. It also returns the positions of the host address outside of
// their field Host, a comparison, and a call that connects or parses.
func hostsIn(declaration ast.Decl) (makes int, mentions []token.Pos) {
	allowed := map[ast.Expr]bool{}
	ast.Inspect(declaration, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.CompositeLit:
			if fmt.Sprint(n.Type) == "Error" {
				makes++
			}
		case *ast.KeyValueExpr:
			if fmt.Sprint(n.Key) == "Host" {
				allowed[n.Value] = true
			}
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				allowed[n.X], allowed[n.Y] = true, true
			}
		case *ast.CallExpr:
			function, ok := n.Fun.(*ast.SelectorExpr)
			if ok && slices.Contains([]string{"net", "netip", "ssh"}, fmt.Sprint(function.X)) {
				for _, argument := range n.Args {
					allowed[argument] = true
				}
			}
		case *ast.SelectorExpr:
			if n.Sel.Name == "Address" && !allowed[n] {
				mentions = append(mentions, n.Pos())
			}
		}
		return true
	})
	return makes, mentions
}
