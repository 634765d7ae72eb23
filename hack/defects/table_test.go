package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const repository = "../.."

func readRepositoryTable(t *testing.T) table {
	t.Helper()
	rows, err := readTable("table")
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// The code under the table changes. This test keeps each row applicable every day, and not only when the defects
// are seeded.
func TestTable_RowsMatchCode(t *testing.T) {
	tests := map[string]packageTests{}
	sentences := map[string]bool{}
	for _, r := range readRepositoryTable(t) {
		t.Run(r.Defect, func(t *testing.T) {
			if r.Defect == "" || sentences[r.Defect] {
				t.Error("each row has a sentence of its own")
			}
			sentences[r.Defect] = true
			if _, err := r.contentWithDefect(repository); err != nil {
				t.Error(err)
			}
			if _, read := tests[r.Package]; !read {
				tests[r.Package] = readTests(t, r.Package)
			}
			if len(r.Fails) == 0 {
				t.Error("it names no test that must fail")
			}
			for _, name := range r.Fails {
				if problem := tests[r.Package].missingPart(name); problem != "" {
					t.Errorf("%s: %s", r.Package, problem)
				}
			}
		})
	}
}

// packageTests contains the tests of a package that are found in its source text.
type packageTests struct {
	functions []string
	text      string
}

func readTests(t *testing.T, name string) packageTests {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, filepath.FromSlash(name), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var tests packageTests
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests.text += string(data)
		parsed, err := parser.ParseFile(token.NewFileSet(), file, data, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv == nil {
				tests.functions = append(tests.functions, function.Name.Name)
			}
		}
	}
	return tests
}

// missingPart returns the missing part of a test: its function, or the sentence of a subtest.
func (p packageTests) missingPart(test string) string {
	function, subtests, _ := strings.Cut(test, "/")
	if !slices.Contains(p.functions, function) {
		return fmt.Sprintf("there is no test %s", function)
	}
	for sentence := range strings.SplitSeq(subtests, "/") {
		if !strings.Contains(p.text, sentence) {
			return fmt.Sprintf("no file has %q, a subtest of %s", sentence, function)
		}
	}
	return ""
}

func TestTable_RowsNameViolatedRules(t *testing.T) {
	document := func(name string) string {
		data, err := os.ReadFile(filepath.Join(repository, "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	requirements, architecture := document("requirements.md"), document("architecture.md")
	_, rules, _ := strings.Cut(architecture, "\n## The rules\n")
	rules, _, _ = strings.Cut(rules, "\n## ")
	_, questions, _ := strings.Cut(architecture, "\n## Where decisions are\n")
	questions, _, _ = strings.Cut(questions, "\n## ")
	rule := regexp.MustCompile(`(?m)^(\d+)\. \*\*`).FindAllStringSubmatch(rules, -1)
	broken := map[string]bool{}
	form := regexp.MustCompile(`^(?:rule (\d+)|(R-\d{3}|D-\d)|(.*\?))$`)
	for _, r := range readRepositoryTable(t) {
		for each := range strings.SplitSeq(r.Breaks, "; ") {
			broken[each] = true
			switch part := form.FindStringSubmatch(each); {
			case part == nil:
				t.Errorf("%s: %q is neither a rule nor a requirement or deviation nor a question", r.Defect, each)
			case part[1] != "" && !slices.ContainsFunc(rule, func(found []string) bool { return found[1] == part[1] }):
				t.Errorf("%s: docs/architecture.md has no %s", r.Defect, each)
			case part[2] != "" && !strings.Contains(requirements, "| "+part[2]+" |"):
				t.Errorf("%s: docs/requirements.md has no %s", r.Defect, each)
			case part[3] != "" && !strings.Contains(questions, part[3]):
				t.Errorf("%s: docs/architecture.md does not say where to find: %s", r.Defect, each)
			}
		}
	}
	if len(rule) == 0 {
		t.Error("docs/architecture.md has no rules")
	}
	for _, found := range rule {
		if !broken["rule "+found[1]] {
			t.Errorf("no row breaks rule %s of docs/architecture.md", found[1])
		}
	}
}
