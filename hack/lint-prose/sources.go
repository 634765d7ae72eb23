package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// skippedDirectories contain text from other projects or generated text.
var skippedDirectories = []string{".git", "build", "testdata", "node_modules"}

// sources contains the Go files and the texts below a directory, by path.
type sources struct {
	code      map[string]*ast.File
	positions *token.FileSet
	texts     map[string]string // Markdown, YAML, C and tables
}

func readSources(root string) (sources, error) {
	all := sources{code: map[string]*ast.File{}, positions: token.NewFileSet(), texts: map[string]string{}}
	tree := os.DirFS(root)
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(skippedDirectories, entry.Name()):
			return fs.SkipDir
		case entry.Type() == fs.ModeSymlink:
			return nil // the file itself is in the tree too
		}
		switch filepath.Ext(name) {
		case ".go":
			all.code[name], err = parser.ParseFile(all.positions, filepath.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		case ".md", ".yaml", ".c", ".h", ".tsv":
			var data []byte
			data, err = fs.ReadFile(tree, name)
			all.texts[name] = string(data)
		}
		return err
	})
	return all, err
}
