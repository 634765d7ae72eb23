package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tally contains the counts of a directory by check, and the sizes of its sources.
type tally struct {
	counts map[string]int
	sizes  map[source]int
}

// tree maps directories to tallies. The tests of a directory have a separate tally.
type tree map[string]*tally

func (t tree) directoryTally(directory string) *tally {
	if t[directory] == nil {
		t[directory] = &tally{counts: map[string]int{}, sizes: map[source]int{}}
	}
	return t[directory]
}

// skippedDirectories contain text from other projects or generated text.
var skippedDirectories = []string{".git", "build", "testdata", "node_modules"}

// countTree counts in all Go and Markdown files below a directory.
func countTree(root string) (tree, error) {
	all := tree{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(skippedDirectories, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case filepath.Ext(name) == ".go":
			return countGo(all, name, file)
		case filepath.Ext(name) == ".md" && !generatedPages[name]:
			return countMarkdown(all, name, file)
		}
		return nil
	})
	return all, err
}

// generatedPages are written by programs.
var generatedPages = map[string]bool{"docs/requirements.md": true, "docs/api.md": true}

// directoryOf returns the directory of a file, three levels deep at most.
func directoryOf(name string) string {
	parts := strings.Split(name, "/")
	directory := strings.Join(parts[:min(len(parts)-1, 3)], "/")
	if directory == "" {
		directory = "."
	}
	if strings.HasSuffix(name, "_test.go") {
		directory += " (tests)"
	}
	return directory
}

// product matches the directories with strings for users, and simulation the files that do not belong to the
// product.
var (
	product    = regexp.MustCompile(`^(?:internal|api|cmd)/`)
	simulation = regexp.MustCompile(`_test\.go$|^internal/host/(?:fake|hosttest)/`)
)

// quoted matches quotations and URLs.
var quoted = regexp.MustCompile("`[^`\n]*`|\"[^\"\n]*\"|https?://\\S+")

func (t *tally) countText(source source, text string) {
	for _, c := range checks {
		if c.source == source && c.pattern != nil {
			t.counts[c.name] += len(c.pattern.FindAllStringIndex(text, -1))
		}
	}
}

func countGo(all tree, name, path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return err
	}
	t := all.directoryTally(directoryOf(name))
	for _, group := range file.Comments {
		text := quoted.ReplaceAllString(strings.Join(strings.Fields(group.Text()), " "), "q")
		t.sizes[sourceComments] += len(strings.Fields(text))
		t.countText(sourceComments, text)
	}
	countStrings := product.MatchString(name) && !simulation.MatchString(name)
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil
		case *ast.FuncDecl:
			t.countFunction(n.Name.Name)
		case *ast.GenDecl:
			t.countConstants(n)
		case *ast.BasicLit:
			if countStrings && n.Kind == token.STRING {
				t.countString(n.Value)
			}
		}
		return true
	})
	return nil
}

func (t *tally) countFunction(name string) {
	t.sizes[sourceNames]++
	if !ast.IsExported(name) && !secondWord.MatchString(name) && !freeNames[name] {
		t.counts[checkOneWordNames]++
	}
	if privateFunction.MatchString(name) {
		t.counts[checkDeclarations]++
	}
}

func (t *tally) countConstants(declaration *ast.GenDecl) {
	if declaration.Tok != token.CONST {
		return
	}
	for _, spec := range declaration.Specs {
		value, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for _, name := range value.Names {
			if privateConstant.MatchString(name.Name) {
				t.counts[checkDeclarations]++
			}
		}
	}
}

// countString counts in a string that a user may read.
func (t *tally) countString(literal string) {
	text, err := strconv.Unquote(literal)
	if err != nil || len(strings.Fields(text)) < minWordsOfSentence {
		return
	}
	t.sizes[sourceStrings]++
	t.countText(sourceStrings, text)
}

// code matches Markdown blocks that are not wrapped.
var code = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```|<!--.*?-->")

func countMarkdown(all tree, name, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	t, words := all.directoryTally(directoryOf(name)), 0
	for line := range strings.Lines(code.ReplaceAllString(string(data), "")) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(strings.TrimSpace(line), "|") {
			continue
		}
		t.sizes[sourceLines]++
		if len([]rune(line)) > maxColumns && strings.Contains(strings.TrimSpace(line), " ") {
			t.counts[checkLongLines]++
		}
		text := quoted.ReplaceAllString(line, "q")
		words += len(strings.Fields(text))
		t.countText(sourceProse, text)
	}
	t.sizes[sourceProse] += words
	t.counts[checkLongPages] += max(0, words-maxPageWords)
	return nil
}
