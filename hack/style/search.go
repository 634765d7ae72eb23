package main

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// finding is a phrase at a place.
type finding struct {
	path    string
	line    int
	text    string
	instead string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %q; instead: %s", f.path, f.line, f.text, f.instead)
}

// skippedFolders hold what nobody here writes as prose.
var skippedFolders = []string{".git", "build", "testdata"}

// skipped reports whether a file is left out: it is generated, quotes others, or is the table itself.
func skipped(name string) bool {
	return name == "docs/requirements.md" || strings.HasPrefix(name, "hack/style/") ||
		strings.HasPrefix(path.Base(name), "zz_generated")
}

// search returns the findings below a folder, in the order of files and lines.
func search(folder string) ([]finding, error) {
	var findings []finding
	err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains(skippedFolders, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		name, err := filepath.Rel(folder, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		passagesOf := map[string]func([]byte) []passage{".go": ofGo, ".md": ofMarkdown}[path.Ext(name)]
		if passagesOf == nil || skipped(name) {
			return nil
		}
		source, err := os.ReadFile(file) //nolint:gosec // The files of the tree, which the caller names.
		if err != nil {
			return err
		}
		for _, p := range passagesOf(source) {
			findings = append(findings, p.find(name)...)
		}
		return nil
	})
	slices.SortStableFunc(findings, func(a, b finding) int {
		if a.path != b.path {
			return strings.Compare(a.path, b.path)
		}
		return a.line - b.line
	})
	return findings, err
}

// passage is text in which a phrase may run from one line to the next; line is its first.
type passage struct {
	line int
	text string
}

func (p passage) find(name string) []finding {
	var findings []finding
	for _, phrase := range phrases {
		for _, at := range phrase.form.FindAllStringIndex(p.text, -1) {
			text := strings.Join(strings.Fields(p.text[at[0]:at[1]]), " ")
			line := p.line + strings.Count(p.text[:at[0]], "\n")
			findings = append(findings, finding{path: name, line: line, text: text, instead: phrase.instead})
		}
	}
	return findings
}

// commentMark is what begins a line of a comment.
var commentMark = regexp.MustCompile(`(?m)^\s*//`)

// ofGo returns the strings of a Go file, and its comments: those on lines that follow each other are one passage.
func ofGo(source []byte) []passage {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	var passages []passage
	end := 0 // the line after the last comment
	for {
		position, kind, literal := s.Scan()
		line := file.Line(position)
		switch kind {
		case token.EOF:
			return passages
		case token.STRING:
			passages = append(passages, passage{line, literal})
		case token.COMMENT:
			text := commentMark.ReplaceAllString(literal, " ")
			if last := len(passages) - 1; end == line && last >= 0 {
				passages[last].text += "\n" + text
			} else {
				passages = append(passages, passage{line, text})
			}
			end = line + strings.Count(literal, "\n") + 1
			continue
		case token.SEMICOLON:
			if literal == "\n" { // the scanner's own, before the comment behind a line
				continue
			}
		}
		end = 0
	}
}

// code is what Markdown shows as it is.
var code = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")

// ofMarkdown returns the paragraphs and tables of a Markdown file without its code.
func ofMarkdown(source []byte) []passage {
	source = code.ReplaceAllFunc(source, func(c []byte) []byte {
		return append([]byte("`"), append(bytes.Repeat([]byte("\n"), bytes.Count(c, []byte("\n"))), '`')...)
	})
	var passages []passage
	line := 1
	for paragraph := range strings.SplitSeq(string(source), "\n\n") {
		passages = append(passages, passage{line, paragraph})
		line += strings.Count(paragraph, "\n") + 2
	}
	return passages
}
