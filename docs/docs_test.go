// Package docs_test keeps the guide and the code consistent.
package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// constant is a constant in the code.
type constant struct {
	name  string // with its package: "remote.DefaultDialTimeout"
	value ast.Expr
}

// findConstants returns the package-level constants with matching names in the files of a pattern, without tests.
func findConstants(t *testing.T, files, names string) []constant {
	t.Helper()
	var found []constant
	for _, file := range parseFiles(t, files) {
		for _, declaration := range file.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				value := spec.(*ast.ValueSpec)
				if len(value.Values) == 1 && regexp.MustCompile(names).MatchString(value.Names[0].Name) {
					found = append(found, constant{file.Name.Name + "." + value.Names[0].Name, value.Values[0]})
				}
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("no constant in %s matches %s", files, names)
	}
	return found
}

// parseFiles returns the files of a pattern, with their comments and without tests.
func parseFiles(t *testing.T, pattern string) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// firstCells returns the rows of a document's tables, keyed by the name in code font at the beginning of the row.
func firstCells(t *testing.T, document string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Za-z.]+)` \\|.*$").FindAllStringSubmatch(string(data), -1) {
		rows[row[1]] = row[0]
	}
	return rows
}

func TestConditions_ConditionsAndReasonsDocumented(t *testing.T) {
	rows := firstCells(t, "conditions.md")
	inCode := map[string]bool{}
	for _, source := range []struct{ files, names string }{
		{"api/v1alpha1/conditions.go", "^(Condition|Reason)"},
		{"internal/remote/errors.go", "^Reason"},
		{"internal/agentapi/agentapi.go", "^Reason"},
		{"internal/nodespec/reporting.go", "^Configuration"},
	} {
		for _, c := range findConstants(t, source.files, source.names) {
			name, err := strconv.Unquote(c.value.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			inCode[name] = true
			if rows[name] == "" {
				t.Errorf("docs/conditions.md has no row for %s (%s)", name, c.name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if !strings.Contains(name, ".") && !inCode[name] {
			t.Errorf("docs/conditions.md has a row for %s, which the code does not know", name)
		}
	}
}

func TestReasons_AreConstants(t *testing.T) {
	for _, pattern := range []string{"internal/controller/instance/*.go", "internal/controller/instance/*/*.go",
		"internal/policy/*.go", "internal/policy/*/*.go"} {
		for _, file := range parseFiles(t, pattern) {
			ast.Inspect(file, func(node ast.Node) bool {
				literal, ok := node.(*ast.CompositeLit)
				if !ok {
					return true
				}
				if name := typeName(literal.Type); name != "Result" && name != "Decision" {
					return true
				}
				for _, element := range literal.Elts {
					field, ok := element.(*ast.KeyValueExpr)
					if !ok || !strings.EqualFold(fmt.Sprint(field.Key), "reason") {
						continue
					}
					if text, ok := field.Value.(*ast.BasicLit); ok {
						t.Errorf("package %s has the reason %s as a text: make it a constant, so that docs/conditions.md must explain it",
							file.Name.Name, text.Value)
					}
				}
				return true
			})
		}
	}
}

// typeName returns the name of a type without the package name.
func typeName(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// limitsForUsers maps the limits of docs/conditions.md to constants.
var limitsForUsers = map[string]string{
	"name resolution and TCP connection":                                "remote.DefaultDialTimeout",
	"SSH handshake and login":                                           "remote.DefaultHandshakeTimeout",
	"the first answer of the agent":                                     "remote.DefaultHelloTimeout",
	"the next message of a running agent":                               "remote.DefaultSilenceTimeout",
	"one run of the agent; the next run continues":                      "remote.DefaultCommandTimeout",
	"Windows enables or disables a feature":                             "timeouts.FeatureTimeout",
	"a service starts":                                                  "timeouts.ServiceStartTimeout",
	"OVN-Kubernetes assigns the pod subnet":                             "instance.podSubnetTimeout",
	"the pod network is created on the host":                            "timeouts.NetworkTimeout",
	"user data of a new Machine":                                        "instance.userDataTimeout",
	"a restart of the host":                                             "scope.rebootTimeout",
	"the kubelet registers its Node":                                    "instance.registrationTimeout",
	"the node reports Ready after its checks":                           "nodes.readyTimeout",
	"a node in service is NotReady before the operator checks its host": "nodes.notReadyGracePeriod",
	"the agent's heartbeat in `WindowsConfiguration`":                   "nodecondition.HeartbeatTimeout",
	"the difference of the clocks of host and operator":                 "support.maxClockSkew",
	"the next check of an unsupported host":                             "result.HostRecheckInterval",
	"the next resolution of the DNS name of a host in service":          "instance.dnsRecheckInterval",
	"the first retry of a failure":                                      "instance.minRetryDelay",
	"the longest delay of a retry":                                      "instance.maxRetryDelay",
}

func TestLimits_AreDocumented(t *testing.T) {
	const document = "dev/time-limits.md"
	rows := firstCells(t, document)
	var limits []constant
	limits = append(limits, findConstants(t, "internal/remote/limits.go", "^Default")...)
	limits = append(limits, findConstants(t, "internal/agent/timeouts/limits.go", "^[A-Z]")...)
	names := "^(userDataTimeout|rebootTimeout|bootIDTimeout|signTimeout|registrationTimeout|kubeletPortTimeout|dnsTimeout|dnsRecheckInterval|" +
		"podSubnetTimeout|readyTimeout|notReadyGracePeriod|HostRecheckInterval|dialTimeout|lateNodeTimeout|drainAttemptTimeout|maxVersionAge|" +
		"reconcileTimeout|shutdownTimeout|maxEnqueued|gatePollInterval|gateIdleInterval)$|RetryDelay$"
	for _, pattern := range []string{"internal/controller/instance/*.go", "internal/controller/instance/*/*.go"} {
		limits = append(limits, findConstants(t, pattern, names)...)
	}
	for _, pattern := range []string{"internal/policy/nodename/*.go", "internal/policy/support/*.go"} {
		limits = append(limits, findConstants(t, pattern, "^(claimTTL|maxClockSkew|maxSkewWithoutAdvice)$")...)
	}
	limits = append(limits, findConstants(t, "internal/controller/nodecondition/controller.go", "^HeartbeatTimeout$")...)
	limits = append(limits, findConstants(t, "internal/controller/orphan/controller.go", "^GracePeriod$")...)
	limits = append(limits, findConstants(t, "internal/controller/clusterconfig/absence.go", "^absenceGracePeriod$")...)
	limits = append(limits, findConstants(t, "internal/controller/source/byoh/removals.go", "^Default(Absence|Removal)$")...)
	limits = append(limits, findConstants(t, "internal/operator/unreadablekinds.go", "^DefaultReadTimeout$")...)
	values := map[string]string{}
	for _, limit := range limits {
		values[limit.name] = formatConstant(t, limit.value)
		if row, want := rows[limit.name], "| "+values[limit.name]+" |"; !strings.Contains(row, want) {
			t.Errorf("docs/%s must have a row for %s with %q, it has %q", document, limit.name, want, row)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if values[name] == "" {
			t.Errorf("docs/%s has a row for %s, which the code does not know", document, name)
		}
	}
	documented := map[string]bool{}
	for _, row := range tableRows(t, readSection(t, "conditions.md", "## Time limits"), "| for | limit |") {
		documented[row[0]] = true
		if want := values[limitsForUsers[row[0]]]; want == "" || row[1] != want {
			t.Errorf("docs/conditions.md has %q, the code %q", row, want)
		}
	}
	for name := range limitsForUsers {
		if !documented[name] {
			t.Errorf("docs/conditions.md has no limit for %s", name)
		}
	}
}

// formatConstant returns a number or a duration in the format of the guide: "10 s".
func formatConstant(t *testing.T, value ast.Expr) string {
	t.Helper()
	if number, ok := value.(*ast.BasicLit); ok {
		return number.Value
	}
	duration := evaluateDuration(t, value)
	switch {
	case duration%time.Minute == 0:
		return fmt.Sprintf("%d min", duration/time.Minute)
	case duration%time.Second == 0:
		return fmt.Sprintf("%d s", duration/time.Second)
	}
	return fmt.Sprintf("%d ms", duration/time.Millisecond)
}

// evaluateDuration supports expressions like time.Minute and 10 * time.Second.
func evaluateDuration(t *testing.T, value ast.Expr) time.Duration {
	t.Helper()
	switch v := value.(type) {
	case *ast.BasicLit:
		number, err := strconv.Atoi(v.Value)
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(number)
	case *ast.BinaryExpr:
		return evaluateDuration(t, v.X) * evaluateDuration(t, v.Y)
	case *ast.SelectorExpr:
		if unit, ok := units[v.Sel.Name]; ok {
			return unit
		}
	}
	t.Fatalf("a limit is written as %T, which this test cannot read", value)
	return 0
}

var units = map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second,
	"Minute": time.Minute, "Hour": time.Hour}
