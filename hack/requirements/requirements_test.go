package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

const exampleTest = `package example

// The package cites R-009 as a whole.

// TestAbove proves R-001.
func TestAbove(t *testing.T) {}

func TestInside(t *testing.T) {
	t.Run("a case", func(t *testing.T) { // R-001, R-002
	})
	_ = "R-003 in a string is no citation"
}

// assert helps to prove R-002.
func assert() {}
`

func TestFindCitations(t *testing.T) {
	repository := fstest.MapFS{
		"internal/example/example_test.go":          {Data: []byte(exampleTest)},
		"internal/example/example.go":               {Data: []byte("package example // R-004\n")},
		"internal/example/testdata/ignored_test.go": {Data: []byte("not Go, R-005")},
		"build/left/over_test.go":                   {Data: []byte("not Go, R-005")},
		".hidden/over_test.go":                      {Data: []byte("not Go, R-005")},
		"a_windows_test.go":                         {Data: []byte("package a\n\nfunc FuzzA() {\n\t/* R-001 twice: R-001 */\n}\n")},
	}
	got, err := findCitations(repository)
	if err != nil {
		t.Fatal(err)
	}
	const file = "internal/example/example_test.go"
	want := map[string][]citation{
		"R-001": {{"a_windows_test.go", "FuzzA"}, {file, "TestAbove"}, {file, "TestInside"}},
		"R-002": {{file, ""}, {file, "TestInside"}},
		"R-009": {{file, ""}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestFindCitationsNamesAFileThatIsNotGo(t *testing.T) {
	_, err := findCitations(fstest.MapFS{"x/broken_test.go": {Data: []byte("packag x")}})
	if err == nil || !strings.Contains(err.Error(), "x/broken_test.go") {
		t.Errorf("got %v, want an error that names the file", err)
	}
}

const exampleDocument = "# Title\n\n| ID | requirement | tests |\n|---|---|---|\n| R-001 | It `works`. | stale |\n| R-002 | It stops. |  |\n\nend\n"

func TestRewrite(t *testing.T) {
	citations := map[string][]citation{"R-001": {{"a_test.go", "TestA"}, {"a_test.go", "TestB"}, {"b_test.go", ""}}}
	fresh, err := rewrite([]byte(exampleDocument), citations)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(exampleDocument, "| stale |", "| a_test.go: TestA, TestB<br>b_test.go |", 1)
	if string(fresh) != want {
		t.Errorf("got:\n%s\nwant:\n%s", fresh, want)
	}
	again, err := rewrite(fresh, citations)
	if err != nil || string(again) != want {
		t.Errorf("a second run gave %v and:\n%s", err, again)
	}
	empty, err := rewrite(fresh, nil)
	if err != nil || strings.Contains(string(empty), "TestA") {
		t.Errorf("without citations it kept old ones: %v\n%s", err, empty)
	}
}

func TestRewriteRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		document  string
		citations map[string][]citation
		want      string
	}{
		"a citation of a requirement that is not there": {
			exampleDocument, map[string][]citation{"R-999": {{"a_test.go", "TestA"}}}, "a_test.go cites R-999",
		},
		"a requirement that is listed twice": {exampleDocument + "| R-001 | Again. | |\n", nil, "R-001 a second time"},
		"a row without a sentence":           {"| R-001 |\n", nil, "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rewrite([]byte(test.document), test.citations)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestRun(t *testing.T) {
	root := t.TempDir()
	write(t, root, document, exampleDocument)
	write(t, root, "a_test.go", "package a\n\nfunc TestA() {\n\t// R-002\n}\n")

	if err := run(root, true, io.Discard); !errors.Is(err, errStale) {
		t.Errorf("the check of a stale document gave %v", err)
	}
	if got := read(t, root, document); got != exampleDocument {
		t.Errorf("the check changed the document to:\n%s", got)
	}
	if err := run(root, false, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := read(t, root, document); !strings.Contains(got, "| R-002 | It stops. | a_test.go: TestA |") {
		t.Errorf("the citation is missing in:\n%s", got)
	}
	if err := run(root, true, io.Discard); err != nil {
		t.Errorf("the check of a fresh document gave %v", err)
	}
}

// Every identifier from 001 to 215 is in use, in order.
func TestTheDocumentHasEveryRequirement(t *testing.T) {
	text := read(t, "../..", document)
	rows := regexp.MustCompile(`(?m)^\| (R-\d{3}) \| `).FindAllStringSubmatch(text, -1)
	if len(rows) != 215 {
		t.Errorf("the document has %d requirements, want 215", len(rows))
	}
	for i, columns := range rows {
		if i > 0 && columns[1] <= rows[i-1][1] {
			t.Errorf("%s stands after %s", columns[1], rows[i-1][1])
		}
	}
}

func write(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, root, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
