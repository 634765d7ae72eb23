package main

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
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

// generatedPages are written by programs.
var generatedPages = map[string]bool{"docs/requirements.md": true, "docs/api.md": true}

// countTree counts in all Go and Markdown files.
func countTree(all sources) tree {
	counts := tree{}
	for name, file := range all.code {
		if !ast.IsGenerated(file) {
			counts.tallyOf(name).countGo(name, file)
		}
	}
	for name, text := range all.texts {
		if path.Ext(name) == ".md" && !generatedPages[name] {
			counts.tallyOf(name).countMarkdown(text)
		}
	}
	return counts
}

// tallyOf returns the tally for a file: the tally of its directory, three levels deep at most.
func (t tree) tallyOf(name string) *tally {
	parts := strings.Split(path.Dir(name), "/")
	directory := strings.Join(parts[:min(len(parts), 3)], "/")
	if strings.HasSuffix(name, "_test.go") {
		directory += " (tests)"
	}
	if t[directory] == nil {
		t[directory] = &tally{counts: map[string]int{}, sizes: map[source]int{}}
	}
	return t[directory]
}

// product matches the directories with strings for users, simulation the files that do not belong to the product,
// quoted quotations and URLs, and codeBlock the blocks of Markdown that are not wrapped.
var (
	product    = regexp.MustCompile(`^(?:internal|api|cmd)/`)
	simulation = regexp.MustCompile(`_test\.go$|^internal/host/(?:fake|hosttest)/`)
	quoted     = regexp.MustCompile("`[^`\n]*`|\"[^\"\n]*\"|https?://\\S+")
	codeBlock  = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```|<!--.*?-->")
)

// countText counts the matches of all checks in a text, and returns its number of words.
func (t *tally) countText(source source, text string) int {
	for _, c := range checks {
		if c.source == source && c.pattern != nil {
			t.counts[c.name] += len(c.pattern.FindAllStringIndex(text, -1))
		}
	}
	return len(strings.Fields(text))
}

func (t *tally) countGo(name string, file *ast.File) {
	for _, group := range file.Comments {
		text := quoted.ReplaceAllString(strings.Join(strings.Fields(group.Text()), " "), "q")
		t.sizes[sourceComments] += t.countText(sourceComments, text)
	}
	countStrings := product.MatchString(name) && !simulation.MatchString(name)
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.FuncDecl:
			t.sizes[sourceNames]++
			if name := n.Name.Name; oneWord.MatchString(name) && !freeNames[name] {
				t.counts[checkOneWordNames]++
			}
			t.countDeclarations(privateFunction, n.Name)
		case *ast.GenDecl:
			if _, declared := documentation(n); n.Tok == token.CONST {
				t.countDeclarations(privateConstant, declared...)
			}
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			if countStrings && n.Kind == token.STRING && err == nil && len(strings.Fields(text)) >= minWordsOfSentence {
				t.sizes[sourceStrings]++
				t.countText(sourceStrings, text)
			}
		}
		return true
	})
}

func (t *tally) countDeclarations(pattern *regexp.Regexp, names ...*ast.Ident) {
	for _, name := range names {
		if pattern.MatchString(name.Name) {
			t.counts[checkDeclarations]++
		}
	}
}

func (t *tally) countMarkdown(text string) {
	words := 0
	for line := range strings.Lines(codeBlock.ReplaceAllString(text, "")) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(strings.TrimSpace(line), "|") {
			continue
		}
		t.sizes[sourceLines]++
		if len([]rune(line)) > maxColumns && strings.Contains(strings.TrimSpace(line), " ") {
			t.counts[checkLongLines]++
		}
		words += t.countText(sourceProse, quoted.ReplaceAllString(line, "q"))
	}
	t.sizes[sourceProse] += words
	t.counts[checkLongPages] += max(0, words-maxPageWords)
}
