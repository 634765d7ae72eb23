package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPhrasesThatMustNotComeBack(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.go", "package p\n\n// Ready tells\n// whether it is.\nvar isTold = \"a port that is none\" // for ever\n\n// for\n\n// ever\n\nfunc otherwise() { /* is\ntold */ }\n")
	write("docs/b.md", "Fine.\n\n```\nis told\n```\n\nIt `is told`\nin code, and is\ntold here.\n\n| to | be |\n|---|---|\n| a | to be had |\n\nfor\n\never\n")
	for _, name := range []string{"docs/requirements.md", "testdata/a.go", "build/a.md", "api/zz_generated.deepcopy.go", "hack/style/phrases.go", "a.yaml"} {
		write(name, "package p\n\n// It is told.\n")
	}
	findings, err := search(folder)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range findings {
		got = append(got, fmt.Sprintf("%s:%d %s", f.path, f.line, f.text))
	}
	want := []string{"a.go:3 tells whether", "a.go:5 that is none", "a.go:5 for ever", "a.go:11 is told", "docs/b.md:8 is told", "docs/b.md:13 to be had"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSubjectsOfCommits(t *testing.T) {
	for subject, faulty := range map[string]bool{
		"remote: send the agent only when its digest differs": false,
		"hack/defects, docs: follow the rooms of the agent":   false,
		`Revert "remote: a limit for each file operation"`:    false,
		"Send the agent only when its digest differs":         true,
		"remote:": true,
		"remote: " + strings.Repeat("x", longestSubject): true,
	} {
		if fault := faultOf(subject); (fault != "") != faulty {
			t.Errorf("%q: %q", subject, fault)
		}
	}
}
