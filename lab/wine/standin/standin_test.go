package standin

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The Wine hosts of all tests use the output of Build. One library with the C runtime and the one without it
// show that builds are reproducible.
func TestBuild(t *testing.T) {
	selected := slices.DeleteFunc(slices.Clone(libraries), func(l library) bool {
		return l.name != "dismapi.dll" && !l.bare
	})
	if len(selected) != 2 {
		t.Fatalf("%d libraries are built", len(selected))
	}
	first, second := t.TempDir(), t.TempDir()
	err := buildLibraries(t.Context(), first, selected)
	if errors.Is(err, ErrNoCompiler) {
		t.Skipf("SKIPPED: the stand-ins for Windows' libraries are not built: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := buildLibraries(t.Context(), second, selected); err != nil {
		t.Fatal(err)
	}
	for _, l := range selected {
		t.Run(l.name+" is the same when it is built twice", func(t *testing.T) {
			a, errA := os.ReadFile(filepath.Join(first, l.name))
			b, errB := os.ReadFile(filepath.Join(second, l.name))
			if err := errors.Join(errA, errB); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(a, b) {
				t.Error("it differs")
			}
		})
	}
}

func TestSources(t *testing.T) {
	for _, l := range append(slices.Clone(libraries), launcher) {
		t.Run(l.name+" says what it simulates and what not", func(t *testing.T) {
			text, err := sources.ReadFile("c/" + l.sources[0])
			if err != nil {
				t.Fatal(err)
			}
			head, _, _ := strings.Cut(string(text), "*/")
			for _, want := range []string{"It simulates:", "It does not simulate:"} {
				if !strings.Contains(head, want) {
					t.Errorf("the head comment has no %q", want)
				}
			}
		})
	}
}
