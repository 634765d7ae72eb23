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

func TestBuild(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	err := Build(t.Context(), first)
	if errors.Is(err, ErrNoCompiler) {
		t.Skipf("SKIPPED: the stand-ins for Windows' libraries are not built: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := Build(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(Libraries(), Launcher) {
		t.Run(name+" is the same when it is built twice", func(t *testing.T) {
			a, errA := os.ReadFile(filepath.Join(first, name))
			b, errB := os.ReadFile(filepath.Join(second, name))
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
