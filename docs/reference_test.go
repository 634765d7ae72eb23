package docs_test

import (
	"go/ast"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// compareNames fails for each name that is only in the code or only in the document.
func compareNames(t *testing.T, what string, inCode, documented []string) {
	t.Helper()
	if len(inCode) == 0 {
		t.Fatalf("no %s was found in the code", what)
	}
	for _, name := range inCode {
		if !slices.Contains(documented, name) {
			t.Errorf("docs/reference.md does not have the %s %s", what, name)
		}
	}
	for _, name := range documented {
		if !slices.Contains(inCode, name) {
			t.Errorf("docs/reference.md has the %s %s, which the code does not know", what, name)
		}
	}
}

// argumentNames returns the texts that calls of methods with these names have as an argument.
func argumentNames(t *testing.T, file string, position int, methods ...string) (names []string) {
	t.Helper()
	known := map[string]string{}
	files := parseFiles(t, file)
	for _, f := range files {
		recordConstants(f, known)
		for _, other := range parseFiles(t, "internal/controller/operatorcondition/*.go") {
			recordConstants(other, known)
		}
		ast.Inspect(f, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) <= position {
				return true
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains(methods, selector.Sel.Name) {
				return true
			}
			switch a := call.Args[position].(type) {
			case *ast.BasicLit:
				text, _ := strconv.Unquote(a.Value)
				names = append(names, text)
			case *ast.Ident:
				names = append(names, known[f.Name.Name+"."+a.Name])
			case *ast.SelectorExpr:
				if text := known["operatorcondition."+a.Sel.Name]; text != "" {
					names = append(names, text)
				}
			}
			return true
		})
	}
	return names
}

func TestReference_OperatorFlagsAndVariablesDocumented(t *testing.T) {
	text := readSection(t, "reference.md", "## The operator")
	var flags, variables []string
	for _, row := range tableRows(t, text, "| flag | default | meaning |") {
		flags = append(flags, strings.TrimPrefix(codeTexts(row[0])[0], "--"))
	}
	compareNames(t, "flag", append(argumentNames(t, "cmd/wmco/main.go", 1, "StringVar", "BoolVar"), "kubeconfig"), flags)
	for _, row := range tableRows(t, text, "| variable | default | meaning |") {
		variables = append(variables, codeTexts(row[0])[0])
	}
	compareNames(t, "variable", argumentNames(t, "cmd/wmco/main.go", 0, "Getenv", "LookupEnv"), variables)
}

func TestReference_AgentCommandsAndFlagsDocumented(t *testing.T) {
	inCode := map[string][]string{"version": nil}
	for _, c := range findConstants(t, "internal/agentapi/agentapi.go", "^(Facts|Inspect|Collect|Plan|Apply|Verify|Remove|Rollback|Commit|Patch|Reboot|Renew|Service)$") {
		name, _ := strconv.Unquote(c.value.(*ast.BasicLit).Value)
		inCode[name] = nil
	}
	documented := map[string]bool{}
	var flags []string
	for _, row := range tableRows(t, readSection(t, "reference.md", "## The agent"), "| command | flags | effect |") {
		documented[codeTexts(row[0])[0]] = true
		for _, flag := range codeTexts(row[1]) {
			flags = append(flags, strings.TrimPrefix(flag, "--"))
		}
	}
	compareNames(t, "verb", slices.Sorted(maps.Keys(inCode)), slices.Sorted(maps.Keys(documented)))
	compareNames(t, "flag of the agent", append(argumentNames(t, "internal/agent/flags.go", 1, "StringVar"),
		argumentNames(t, "internal/agent/flags.go", 0, "Func")...), flags)
}

func TestReference_LabelsAndAnnotationsDocumented(t *testing.T) {
	var inCode, documented []string
	for _, c := range findConstants(t, "api/v1alpha1/names.go", "^(Label|Annotation|Taint)") {
		name, err := strconv.Unquote(c.value.(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		inCode = append(inCode, name)
	}
	for _, row := range tableRows(t, readSection(t, "reference.md", "## Labels, annotations and taints"),
		"| name | on | set by | meaning |") {
		for _, name := range codeTexts(row[0]) {
			documented = append(documented, strings.Replace(name, "…", "windowsmachineconfig.openshift.io", 1))
		}
	}
	compareNames(t, "label or annotation", inCode, documented)
}

// Each field of the API has a comment, and docs/api.md contains it. `make generate` writes that document.
func TestAPI_EachFieldDescribed(t *testing.T) {
	fields := 0
	for _, file := range parseFiles(t, "api/v1alpha1/[a-y]*.go") {
		ast.Inspect(file, func(node ast.Node) bool {
			declared, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			structure, ok := declared.Type.(*ast.StructType)
			if !ok || strings.HasSuffix(declared.Name.Name, "List") {
				return true
			}
			rows := apiRows(t, declared.Name.Name)
			for _, field := range structure.Fields.List {
				name := jsonName(field)
				if len(field.Names) == 0 || name == "" {
					continue
				}
				fields++
				comment := formatComment(field)
				if !strings.HasPrefix(comment, name+" ") {
					t.Errorf("%s.%s: its comment must begin with %q, so that the definition describes it: %q", declared.Name.Name,
						field.Names[0], name, comment)
				}
				if !strings.HasSuffix(rows[name], "| "+strings.ReplaceAll(comment, "<", "&lt;")+" |") {
					t.Errorf("docs/api.md says of %s.%s: %q; run make generate", declared.Name.Name, name, rows[name])
				}
			}
			return true
		})
	}
	if fields < 80 {
		t.Errorf("only %d fields were found", fields)
	}
}

// apiRows returns the rows of a type's table in docs/api.md, by field.
func apiRows(t *testing.T, kind string) map[string]string {
	t.Helper()
	rows := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|.*$").FindAllStringSubmatch(readSection(t, "api.md",
		"## "+kind), -1) {
		rows[row[1]] = row[0]
	}
	return rows
}

// jsonName returns the name of a field in JSON.
func jsonName(field *ast.Field) string {
	if field.Tag == nil {
		return ""
	}
	tag, _ := strconv.Unquote(field.Tag.Value)
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	return name
}

// formatComment returns the comment of a field in one line, without markers.
func formatComment(field *ast.Field) string {
	var words []string
	if field.Doc != nil {
		for line := range strings.Lines(field.Doc.Text()) {
			if !strings.HasPrefix(line, "+") {
				words = append(words, strings.Fields(line)...)
			}
		}
	}
	return strings.Join(words, " ")
}
