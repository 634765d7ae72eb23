package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// proof is a test that cites an identifier: path/of/file_test.go: TestName/name of the subtest.
type proof struct {
	file string // slash-separated, from the root of the repository
	test string
}

func (p proof) String() string { return p.file + ": " + p.test }

// realComponents lists directories of the lab with tests that pass output of the product to the real programs of a
// node, and verify both.
var realComponents = []string{"lab/controlplane/kubelet/", "lab/controlplane/kubeproxy/", "lab/prometheus/",
	"lab/wine/components/"}

// isInLab reports whether a test verifies only the lab, including the simulated machine. Such a test proves nothing
// about the product.
func (p proof) isInLab() bool {
	if slices.ContainsFunc(realComponents, func(folder string) bool { return strings.HasPrefix(p.file, folder) }) {
		return false
	}
	return strings.HasPrefix(p.file, "lab/") || strings.HasPrefix(p.file, "internal/host/fake/")
}

var (
	identifier   = regexp.MustCompile(`\b[RLD]-\d+\b`)
	testFunction = regexp.MustCompile(`^(Test|Fuzz)($|[^a-z])`)
	identRange   = regexp.MustCompile(`\b[RLD]-\d+\s*(?:\bto\b|\buntil\b|\bthrough\b|-|–|—|…|\.\.+)\s*(?:[RLD]-)?\d+`)
)

// subtest matches a line with the name of a subtest: a t.Run call, or a row of a table.
var subtest = regexp.MustCompile(`^[^"]*\bt\.Run\(("(?:[^"\\]|\\.)*"),|^\s*\{?(?:.*\bname: )?("(?:[^"\\]|\\.)*")(?::|,|\}|$)`)

// findCitations parses every test file below root and returns the tests that cite each identifier, sorted and
// without duplicates. The error names every comment that cites outside of a test. Build results, test data, and
// directories with a leading dot or underscore are excluded.
func findCitations(root fs.FS) (map[string][]proof, error) {
	found := map[string][]proof{}
	var faults []error
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && isExcluded(name, entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		faults = append(faults, addFile(found, root, name))
		return nil
	})
	for id, proofs := range found {
		slices.SortFunc(proofs, func(a, b proof) int { return strings.Compare(a.String(), b.String()) })
		found[id] = slices.Compact(proofs)
	}
	return found, errors.Join(append(faults, err)...)
}

func isExcluded(name, base string) bool {
	if name == "." {
		return false
	}
	return name == "build" || base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
}

// addFile adds the citations in the comments of one file.
func addFile(found map[string][]proof, root fs.FS, name string) error {
	source, err := fs.ReadFile(root, name)
	if err != nil || !identifier.Match(source) {
		return err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("reading comments of tests: %w", err)
	}
	lines := bytes.Split(source, []byte("\n"))
	var faults []error
	for _, group := range file.Comments {
		ids := identifier.FindAllString(textOf(group), -1)
		if len(ids) == 0 {
			continue
		}
		test, fault := testOf(set, file, lines, group), ""
		switch {
		case identRange.MatchString(textOf(group)):
			fault = "a range hides what is cited: name each identifier"
		case !isRunInCI(name, source):
			fault = "no command of .ci/run builds this file, so it proves nothing"
		case test == "":
			fault = ids[0] + " is cited outside of a test"
		}
		if fault != "" {
			faults = append(faults, fmt.Errorf("%s: %s", set.Position(group.Pos()), fault))
			continue
		}
		for _, id := range ids {
			found[id] = append(found[id], proof{file: name, test: test})
		}
	}
	return errors.Join(faults...)
}

// testOf returns the test function of a comment or documented by it, the subtests around the comment, and the
// subtest named in the same line. For a comment on a separate line, the subtest is named in the next line. The
// result is empty outside of tests.
func testOf(set *token.FileSet, file *ast.File, lines [][]byte, group *ast.CommentGroup) string {
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		switch {
		case !ok || !isTest(function):
		case function.Doc == group:
			return function.Name.Name
		case function.Pos() < group.Pos() && group.End() < function.End():
			at := set.Position(group.Pos())
			line := lines[at.Line-1][:at.Column-1]
			if len(bytes.TrimSpace(line)) == 0 {
				line = lines[set.Position(group.End()).Line]
			}
			around, known := subtestsAround(function.Body, group)
			names := append([]string{function.Name.Name}, around...)
			if found := subtest.FindSubmatch(line); found != nil && known {
				text, err := strconv.Unquote(string(append(found[1], found[2]...)))
				if err == nil && text != names[len(names)-1] {
					names = append(names, text)
				}
			}
			return strings.Join(names, "/")
		}
	}
	return ""
}

// subtestsAround returns the names of the subtests around a comment, the outermost first. It also reports whether
// the names are complete: a name that is computed in a loop is not known.
func subtestsAround(body *ast.BlockStmt, group *ast.CommentGroup) (names []string, known bool) {
	known = true
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !known || call.Pos() > group.Pos() || group.End() > call.End() || len(call.Args) != 2 {
			return known
		}
		if selector, isMethod := call.Fun.(*ast.SelectorExpr); !isMethod || selector.Sel.Name != "Run" {
			return true
		}
		var text string
		if name, isText := call.Args[0].(*ast.BasicLit); isText {
			text, _ = strconv.Unquote(name.Value)
		}
		if known = text != ""; known {
			names = append(names, text)
		}
		return known
	})
	return names, known
}

// isTest reports whether `go test` runs the function and the function can fail. A benchmark proves nothing.
func isTest(function *ast.FuncDecl) bool {
	name := function.Name.Name
	return function.Recv == nil && function.Body != nil && name != "TestMain" && testFunction.MatchString(name)
}

// textOf returns the text of a comment, including directives.
func textOf(group *ast.CommentGroup) string {
	var text strings.Builder
	for _, comment := range group.List {
		text.WriteString(strings.TrimPrefix(comment.Text, "//") + "\n")
	}
	return text.String()
}

// testedOnWine lists the directories with Windows tests that test/contract runs under Wine.
var testedOnWine = []string{"api/", "cmd/", "internal/"}

// isRunInCI reports whether a command of .ci/run builds a test file: for this machine, or for Windows if its tests
// run under Wine. None of these commands sets a build tag.
func isRunInCI(name string, source []byte) bool {
	onWine := slices.ContainsFunc(testedOnWine, func(folder string) bool { return strings.HasPrefix(name, folder) })
	return isBuilt(name, source, "linux") || onWine && isBuilt(name, source, "windows")
}

func isBuilt(name string, source []byte, system string) bool {
	context := build.Default
	context.GOOS, context.GOARCH, context.BuildTags, context.CgoEnabled = system, "amd64", nil, true
	context.OpenFile = func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(source)), nil }
	built, err := context.MatchFile(path.Dir(name), path.Base(name))
	return err == nil && built
}
