package docs_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// emission is a position in the code that emits an event.
type emission struct {
	where, eventType string
	reasons          []string
}

// computedReasons contains the functions without a constant reason, with the possible reasons. The reasons of conditions
// have a separate test, so docs/events.md lists no reasons for status.StoppedEvent.
func computedReasons() map[string][]string {
	return map[string][]string{
		"status.StoppedEvent":         nil,
		"machine.hostUnmanaged":       {"MachineDeleting", "MachineFailed", "MachineIgnored"},
		"clusterconfig.reportSupport": {"ClusterVersionUnsupported", "NetworkUnsupported", "PlatformUnsupported", "ClusterConfigurationInvalid"},
		"csr.reportPending":           {"ServingCertificateNotApproved", "ClientCertificateNotApproved"},
		"monitoring.reportState":      {"ObjectConflict"},
		"recorder.Eventf":             nil, // forwards events
		"recorder.Emit":               nil,
	}
}

// findEmissions returns every position below internal that emits an event, by recorder's constructors or by Eventf.
func findEmissions(t *testing.T) (found []emission) {
	t.Helper()
	known, all := map[string]string{}, map[string][]*ast.File{}
	err := filepath.WalkDir("../internal", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			if matches, _ := filepath.Glob(filepath.Join(path, "*.go")); len(matches) > 0 {
				all[path] = parseFiles(t, filepath.Join(strings.TrimPrefix(path, "../"), "*.go"))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all["../api/v1alpha1"] = parseFiles(t, "api/v1alpha1/*.go")
	for _, files := range all {
		for _, file := range files {
			recordConstants(file, known)
		}
	}
	for _, files := range all {
		for _, file := range files {
			for _, declaration := range file.Decls {
				if function, ok := declaration.(*ast.FuncDecl); ok && function.Body != nil {
					found = append(found, emissionsIn(t, file.Name.Name, function, known)...)
				}
			}
		}
	}
	return found
}

// recordConstants records the texts of a file's constants by name, with and without the package name.
func recordConstants(file *ast.File, known map[string]string) {
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec)
			for i, name := range value.Names {
				if i >= len(value.Values) {
					continue
				}
				if literal, ok := value.Values[i].(*ast.BasicLit); ok && literal.Kind == token.STRING {
					text, _ := strconv.Unquote(literal.Value)
					known[file.Name.Name+"."+name.Name] = text
				}
			}
		}
	}
}

// emissionsIn returns the events that a function emits.
func emissionsIn(t *testing.T, pkg string, function *ast.FuncDecl, known map[string]string) (found []emission) {
	t.Helper()
	ast.Inspect(function, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		e := emission{where: pkg + "." + function.Name.Name}
		var reason ast.Expr
		switch {
		case (selector.Sel.Name == "Normal" || selector.Sel.Name == "Warning") && fmt.Sprint(selector.X) == "recorder" && len(call.Args) == 5:
			e.eventType, reason = selector.Sel.Name, call.Args[2]
		case selector.Sel.Name == "Eventf" && len(call.Args) >= 6:
			reason = call.Args[3]
			if eventType, ok := call.Args[2].(*ast.SelectorExpr); ok && strings.HasPrefix(eventType.Sel.Name, "EventType") {
				e.eventType = strings.TrimPrefix(eventType.Sel.Name, "EventType")
			}
		default:
			return true
		}
		e.reasons = reasonsOf(t, e.where, pkg, reason, known)
		found = append(found, e)
		return true
	})
	return found
}

// reasonsOf returns the possible values of an event's reason.
func reasonsOf(t *testing.T, where, pkg string, reason ast.Expr, known map[string]string) []string {
	t.Helper()
	switch r := reason.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(r.Value)
		if err != nil {
			t.Fatal(err)
		}
		return []string{text}
	case *ast.Ident:
		if text, ok := known[pkg+"."+r.Name]; ok {
			return []string{text}
		}
	case *ast.SelectorExpr:
		if text, ok := known[fmt.Sprint(r.X)+"."+r.Sel.Name]; ok {
			return []string{text}
		}
	}
	reasons, ok := computedReasons()[where]
	if !ok {
		t.Errorf("%s computes the reason of an event: make it a constant, or list what it can be in this test", where)
	}
	return reasons
}

var eventRow = regexp.MustCompile("(?m)^\\| (`[A-Z][A-Za-z]+`(?:, `[A-Z][A-Za-z]+`)*) \\| ([NW](?:, [NW])?) \\| .+ \\| .+ \\| .+ \\|$")

func TestEvents_EachIsDocumented(t *testing.T) {
	documented := map[string]string{}
	for _, row := range eventRow.FindAllStringSubmatch(readText(t, "events.md"), -1) {
		for _, reason := range codeTexts(row[1]) {
			if documented[reason] != "" {
				t.Errorf("docs/events.md has %s twice", reason)
			}
			documented[reason] = row[2]
		}
	}
	emitted := map[string]bool{}
	for _, e := range findEmissions(t) {
		for _, reason := range e.reasons {
			emitted[reason] = true
			types := documented[reason]
			if types == "" {
				t.Errorf("docs/events.md has no row for the event %s (%s)", reason, e.where)
			} else if e.eventType != "" && !strings.Contains(types, e.eventType[:1]) {
				t.Errorf("docs/events.md says %q of the event %s, which is a %s event in %s", types, reason, e.eventType, e.where)
			}
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(documented)) {
		if !emitted[reason] {
			t.Errorf("docs/events.md has a row for %s, which nothing makes", reason)
		}
	}
	if len(emitted) < 60 {
		t.Errorf("only %d events were found in the code", len(emitted))
	}
}
