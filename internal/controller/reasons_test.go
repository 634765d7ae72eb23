// Package controller contains only a test of all controllers.
package controller

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// allowedReasonComparers lists the functions that may compare a reason, because the comparison only selects the words
// of a message.
var allowedReasonComparers = []string{
	"instance/identity/cloud.go cloudNameResult", "instance/phase_eligible.go reconcile",
	"instance/phase_unmanaged.go unmanagedResult",
	"source/machine/events.go hostUnmanaged",
	// Here the reason is a field of the spec, which the source writes.
	"instance/phase_unmanaged.go getCordonedNode", "monitoring/wanted.go departureOf",
}

// allowedConditionReaders lists the functions that may read conditions, because these functions write conditions,
// select the words of a message, or create events and metrics.
var allowedConditionReaders = []string{
	"disruption/policyupdate.go emitEvents", "disruption/controller.go setMetrics",
	"instance/scope/scope.go RestoreTrueConditions",
	"instance/status/conditions.go setConditions", "instance/status/progress.go Progress", "instance/status/status.go computeReadiness", "instance/status/status.go updateConditions",
}

// Conditions, their reasons, the summary and the names of phases are texts for administrators. Rewording them must
// not change the behavior of the operator: decisions read typed fields. Kinds of errors (remote.Reason,
// agentapi.Reason) are separate types and may be compared.
func TestControllers_NoDecisionByConditionText(t *testing.T) {
	files, checked := token.NewFileSet(), 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		checked++
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || slices.Contains(allowedReasonComparers, filepath.ToSlash(path)+" "+function.Name.Name) {
				continue
			}
			ast.Inspect(function, func(node ast.Node) bool {
				if call, ok := node.(*ast.CallExpr); ok && readsCondition(call) && !slices.Contains(allowedConditionReaders, filepath.ToSlash(path)+" "+function.Name.Name) {
					t.Errorf("%s: %s reads a condition: use a typed field", files.Position(call.Pos()), function.Name.Name)
				}
				return true
			})
			for _, compared := range comparisonOperands(function) {
				if what := describeUserText(compared); what != "" {
					t.Errorf("%s: %s decides by %s: use a typed field", files.Position(compared.Pos()), function.Name.Name, what)
				}
			}
		}
		return nil
	})
	if err != nil || checked < 50 {
		t.Fatalf("%d files, error %v", checked, err)
	}
}

// readsCondition reports whether a call searches for a condition of the operator with a function of apimachinery.
func readsCondition(call *ast.CallExpr) bool {
	selected, ok := call.Fun.(*ast.SelectorExpr)
	return ok && fmt.Sprint(selected.X) == "meta" && (selected.Sel.Name == "FindStatusCondition" || strings.HasPrefix(selected.Sel.Name, "IsStatusCondition"))
}

// comparisonOperands returns the operands of all comparisons in a function.
func comparisonOperands(function *ast.FuncDecl) (compared []ast.Expr) {
	ast.Inspect(function, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				compared = append(compared, n.X, n.Y)
			}
		case *ast.SwitchStmt:
			if n.Tag != nil {
				compared = append(compared, n.Tag)
			}
		case *ast.CaseClause:
			compared = append(compared, n.List...)
		case *ast.CallExpr:
			if name := fmt.Sprint(n.Fun); strings.Contains(name, "slices") && strings.Contains(name, "Contains") {
				ast.Inspect(n, func(inner ast.Node) bool {
					if list, ok := inner.(*ast.CompositeLit); ok {
						compared = append(compared, list.Elts...)
					}
					return true
				})
			}
		}
		return true
	})
	return compared
}

// describeUserText describes an expression that is a text for administrators; "" for any other expression.
func describeUserText(expression ast.Expr) string {
	if call, ok := expression.(*ast.CallExpr); ok && fmt.Sprint(call.Fun) == "string" && len(call.Args) == 1 {
		expression = call.Args[0]
		if selected, ok := expression.(*ast.SelectorExpr); ok && strings.HasPrefix(selected.Sel.Name, "Reason") {
			return "the text of " + selected.Sel.Name
		}
	}
	selected, ok := expression.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	switch of := fmt.Sprint(selected.X); {
	case of == "v1alpha1" && strings.HasPrefix(selected.Sel.Name, "Reason"):
		return selected.Sel.Name
	case selected.Sel.Name == "Summary":
		return "a summary"
	case of == "o" && selected.Sel.Name == "Phase", (of == "phase" || of == "p") && selected.Sel.Name == "name":
		return "the name of a phase"
	}
	return ""
}
