package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

const (
	securityGuide   = "security.md"
	attackPage      = "verified/attacks.md"
	rightsReference = "rights.md"
)

// testsIn returns the names of the tests in a file.
func testsIn(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return nil
	}
	var names []string
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv == nil &&
			regexp.MustCompile("^(Test|Fuzz)").MatchString(function.Name.Name) {
			names = append(names, function.Name.Name)
		}
	}
	return names
}

// citedTests returns the tests that a document cites as evidence, by file.
func citedTests(t *testing.T, document string) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	for _, match := range regexp.MustCompile("\\[`((?:Test|Fuzz)\\w+)`\\]\\(([^)]+)\\)").FindAllStringSubmatch(readText(t,
		document), -1) {
		tests[match[2]] = append(tests[match[2]], match[1])
	}
	return tests
}

func TestCitedTests_Exist(t *testing.T) {
	for _, document := range []string{attackPage, "escaped-bugs.md"} {
		tests := citedTests(t, document)
		if len(tests) < 5 {
			t.Fatalf("%s names tests in %d files", document, len(tests))
		}
		for path, names := range tests {
			there := testsIn(t, filepath.Join(filepath.Dir(document), filepath.FromSlash(path)))
			for _, name := range names {
				if !slices.Contains(there, name) {
					t.Errorf("%s: there is no test %s in %s", document, name, path)
				}
			}
		}
	}
}

func TestEveryAttackHasTests(t *testing.T) {
	tests := citedTests(t, attackPage)
	paths, err := filepath.Glob("../test/security/*_test.go")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%v, %v", paths, err)
	}
	for _, path := range paths {
		for _, name := range testsIn(t, path) {
			if name != "TestMain" && !slices.Contains(tests["../"+filepath.ToSlash(path)], name) {
				t.Errorf("%s does not have %s in %s", attackPage, name, path)
			}
		}
	}
	_, threats, _ := strings.Cut(readText(t, securityGuide), "\n## Threats\n")
	threats, _, _ = strings.Cut(threats, "\n## ")
	attackers := map[string]bool{}
	for _, row := range tableRows(t, readText(t, attackPage), "| attacker | goal | tests |") {
		attackers[row[0]] = true
		if len(row) != 3 || row[2] == "" {
			t.Errorf("%s has no test for %q", attackPage, row)
		}
		defense := readSection(t, securityGuide, "### "+row[0])
		if text := strings.ToLower(strings.Join(strings.Fields(defense), " ")); !strings.Contains(text, "**"+strings.ToLower(row[1])) {
			t.Errorf("%s does not describe the goal %q of %q", securityGuide, row[1], row[0])
		}
	}
	for _, heading := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllStringSubmatch(threats, -1) {
		if !attackers[heading[1]] {
			t.Errorf("%s has no tests for %q", attackPage, heading[1])
		}
	}
	if len(attackers) < 10 {
		t.Errorf("%s has only %d attackers", attackPage, len(attackers))
	}
}

// verbsByResource returns the resources that the operator has permissions for, with the verbs.
func verbsByResource(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for document := range strings.SplitSeq(readText(t, "../deploy/rbac/role.yaml"), "\n---\n") {
		role := rbacv1.ClusterRole{}
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				found[resource] = append(found[resource], rule.Verbs...)
			}
		}
	}
	if len(found) < 10 {
		t.Fatalf("the roles have rules for %d resources", len(found))
	}
	return found
}

func TestSecurityGuide_ListsEachRight(t *testing.T) {
	rows := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[a-z/`, ]+`) \\| ([a-z, ]+) \\| .*$").FindAllStringSubmatch(readText(t, rightsReference), -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			name = strings.Trim(name, "`")
			rows[name] = append(rows[name], strings.Split(row[2], ", ")...)
		}
	}
	rights := verbsByResource(t)
	for resource, verbs := range rights {
		for _, verb := range verbs {
			if !slices.Contains(rows[resource], verb) {
				t.Errorf("%s does not say why the operator may %s %s", rightsReference, verb, resource)
			}
		}
	}
	for resource, verbs := range rows {
		for _, verb := range verbs {
			if !slices.Contains(rights[resource], verb) {
				t.Errorf("%s says that the operator may %s %s, and it may not", rightsReference, verb, resource)
			}
		}
	}
}

func TestSecurityGuide_ListsEachAdmissionPolicy(t *testing.T) {
	source, err := os.ReadFile("../internal/controller/admission/policies.go")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`OperatorName \+ "(-[a-z-]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(names) == 0 {
		t.Fatal("no policy was found")
	}
	guide := readText(t, securityGuide)
	for _, name := range names {
		if !strings.Contains(guide, "| `windows-machine-config-operator"+name[1]+"` |") {
			t.Errorf("%s has no row for the admission policy windows-machine-config-operator%s", securityGuide, name[1])
		}
	}
}
