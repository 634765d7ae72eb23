package docs_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is generated in the documents")

// Markers around each part of a document that these tests write.
const (
	begin = "<!-- begin of what go test ./docs -update writes -->"
	end   = "<!-- end of what go test ./docs -update writes -->"
)

// syncDocument compares the generated parts of a document with these texts, in order, or writes them.
func syncDocument(t *testing.T, document string, texts ...string) {
	t.Helper()
	fresh, err := replaceGenerated(readText(t, document), texts...)
	if err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	syncFile(t, document, fresh)
}

// syncFile compares a file with the expected content, or writes it.
func syncFile(t *testing.T, path, fresh string) {
	t.Helper()
	if readText(t, path) == fresh {
		return
	}
	if !*update {
		t.Fatalf("%s does not say what the code says: run `make generate` and commit the result", path)
	}
	if err := os.WriteFile(path, []byte(fresh), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replaceGenerated returns the document with the texts between the markers. All other bytes are preserved.
func replaceGenerated(document string, texts ...string) (string, error) {
	fresh, total := "", len(texts)
	for len(texts) > 0 {
		before, rest, found := strings.Cut(document, begin)
		_, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			break
		}
		fresh, document, texts = fresh+before+begin+"\n\n"+texts[0]+"\n"+end, after, texts[1:]
	}
	if len(texts) > 0 || strings.Contains(document, begin) {
		return "", fmt.Errorf("it needs %d lines %q, and a line %q after each", total, begin, end)
	}
	return fresh + document, nil
}

func TestReplaceGenerated_KeepsHandwrittenText(t *testing.T) {
	const before = "a\n" + begin + "\nold\n" + end + "\nb\n" + begin + "\n" + end + "\nc\n"
	const after = "a\n" + begin + "\n\n1\n" + end + "\nb\n" + begin + "\n\n2\n" + end + "\nc\n"
	if got, err := replaceGenerated(before, "1", "2"); err != nil || got != after {
		t.Errorf("got %q, error %v", got, err)
	}
	for name, document := range map[string]string{
		"without markers": "a\n", "with one pair": "a\n" + begin + "\n" + end + "\n",
		"with three": before + begin + "\n" + end + "\n", "with an end missing": "a\n" + begin + "\n" + begin + "\n" + end + "\n",
		"with an end first": end + begin,
	} {
		t.Run("one "+name+" is refused", func(t *testing.T) {
			if got, err := replaceGenerated(document, "1", "2"); err == nil {
				t.Errorf("got %q", got)
			}
		})
	}
}

// markdown builds a table row by row.
type markdown struct{ strings.Builder }

func newTable(head ...string) *markdown {
	m := &markdown{}
	m.addRow(head...)
	m.WriteString("|" + strings.Repeat("---|", len(head)) + "\n")
	return m
}

func (m *markdown) addRow(cells ...string) { m.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
