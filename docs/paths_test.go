package docs_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// pathInCode matches a path of this repository in a document: a directory, a file, or several with a star. Some paths
// begin with a short name.
var pathInCode = regexp.MustCompile("`((?:internal|instance|agent|policy|source|host|cmd|api|lab|test|hack|deploy|examples|payload|docs)/[^` <>…]*)`")

var short = map[string]string{"instance": "internal/controller/instance", "agent": "internal/agent", "policy": "internal/policy",
	"source": "internal/controller/source", "host": "internal/host"}

// forDevelopers lists the documents that name files and functions.
var forDevelopers = []string{"architecture.md", "dev/recipes.md", "dev/testing.md", "../CONTRIBUTING.md", "../HACKING.md"}

// foreignPaths are paths of containerd and of Prometheus' API, and of results that do not exist yet.
var foreignPaths = map[string]bool{"internal/layers/wcow_mount.go": true, "api/v1/": true, "docs/verified/windows-2022": true}

// findFiles returns the files and directories with a path of a document.
func findFiles(t *testing.T, path string) []string {
	t.Helper()
	first, rest, _ := strings.Cut(path, "/")
	if long, ok := short[first]; ok {
		path = long + "/" + rest
	}
	files, err := filepath.Glob("../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestPathsInDocumentsAreThere(t *testing.T) {
	for _, document := range guidePaths(t) {
		found := pathInCode.FindAllStringSubmatch(readText(t, document), -1)
		if len(found) == 0 && slices.Contains(forDevelopers, document) {
			t.Errorf("%s names no path", document)
		}
		for _, match := range found {
			if len(findFiles(t, match[1])) == 0 && !foreignPaths[match[1]] {
				t.Errorf("%s names %s, which is not there", document, match[1])
			}
		}
	}
}

// nameOfCode matches a name with an inner capital, and nameInFile a name and the file that contains it.
var (
	nameOfCode = regexp.MustCompile("`(?:\\w+\\.)*(\\w*[a-z0-9][A-Z]\\w*)(?:\\(\\))?`")
	nameInFile = regexp.MustCompile("`(\\w+)`(?: and `(\\w+)`)? (?:in|of) `([\\w./-]+)`")
)

// formerNames are names in decisions that code of earlier versions had.
var formerNames = map[string]bool{"WindowsNodeReport": true}

func TestNamesInDocumentsForDevelopersAreThere(t *testing.T) {
	words := wordsBelow(t, "api", "cmd", "deploy", "hack", "internal", "lab", "test")
	decisions, err := filepath.Glob("decisions/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range slices.Concat(forDevelopers, decisions) {
		text := strings.Join(strings.Fields(readText(t, document)), " ")
		for _, match := range nameOfCode.FindAllStringSubmatch(text, -1) {
			if !words[match[1]] && !formerNames[match[1]] {
				t.Errorf("%s names %s, which is not there", document, match[0])
			}
		}
		for _, match := range nameInFile.FindAllStringSubmatch(text, -1) {
			files := findFiles(t, match[3])
			if len(files) != 1 || filepath.Ext(files[0]) == "" {
				continue // a directory, or a file of the directory that was named before
			}
			content := readText(t, files[0])
			for _, name := range match[1:3] {
				if !regexp.MustCompile(`\b` + name + `\b`).MatchString(content) {
					t.Errorf("%s names %s in %s, which is not there", document, name, match[3])
				}
			}
		}
	}
}

// wordsBelow returns the words of all files below directories of the repository, except for documents.
func wordsBelow(t *testing.T, directories ...string) map[string]bool {
	t.Helper()
	words := map[string]bool{}
	for _, directory := range directories {
		err := filepath.WalkDir("../"+directory, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) == ".md" {
				return err
			}
			isWord := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
			for _, word := range strings.FieldsFunc(readText(t, path), func(r rune) bool { return !isWord(r) }) {
				words[word] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return words
}
