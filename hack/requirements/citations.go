package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// citation is one place that names a requirement.
type citation struct {
	file string // slash-separated, from the root of the repository
	test string // the enclosing test function, empty where the comment stands outside of one
}

var identifier = regexp.MustCompile(`\bR-\d{3}\b`)

// findCitations parses every _test.go file below root, whatever its build tags, and returns for each requirement the
// places that cite it: sorted, each once. It leaves out build results, test data, and directories whose name starts with
// a dot or an underscore.
func findCitations(root fs.FS) (map[string][]citation, error) {
	found := map[string][]citation{}
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && isLeftOut(path, entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		return addFile(found, root, path)
	})
	if err != nil {
		return nil, err
	}
	for id, places := range found {
		slices.SortFunc(places, func(a, b citation) int {
			return strings.Compare(a.file+"\x00"+a.test, b.file+"\x00"+b.test)
		})
		found[id] = slices.Compact(places)
	}
	return found, nil
}

func isLeftOut(path, name string) bool {
	if path == "." {
		return false
	}
	return path == "build" || name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

// addFile adds what the comments of one file cite.
func addFile(found map[string][]citation, root fs.FS, path string) error {
	source, err := fs.ReadFile(root, path)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("reading comments of tests: %w", err)
	}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			for _, id := range identifier.FindAllString(comment.Text, -1) {
				found[id] = append(found[id], citation{file: path, test: enclosingTest(file, comment)})
			}
		}
	}
	return nil
}

// enclosingTest names the test function in whose body or doc comment the comment stands.
func enclosingTest(file *ast.File, comment *ast.Comment) string {
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Recv != nil || !isTest(function.Name.Name) {
			continue
		}
		from := function.Pos()
		if function.Doc != nil {
			from = function.Doc.Pos()
		}
		if from <= comment.Pos() && comment.Pos() < function.End() {
			return function.Name.Name
		}
	}
	return ""
}

func isTest(function string) bool {
	return slices.ContainsFunc([]string{"Test", "Fuzz", "Benchmark", "Example"}, func(prefix string) bool {
		return strings.HasPrefix(function, prefix)
	})
}
