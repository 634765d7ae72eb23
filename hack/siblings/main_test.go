package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSiblingsThatAFileCalls(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"a.go":      "package p\n\nfunc a() { b(); b(); own(); var x t; x.c(); x.twice() }\n\nfunc own() {}\n",
		"b.go":      "package p\n\nfunc b() {}\n\nfunc (t) twice() {}\n",
		"c.go":      "package p\n\ntype t int\n\nfunc (t) c() { b() }\n\ntype u int\n\nfunc (u) twice() {}\n",
		"a_test.go": "package p\n\nfunc test() { a() }\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := parse(folder)
	if err != nil {
		t.Fatal(err)
	}
	got := siblings(files)
	if len(got) != 3 || got["a.go"] != 2 || got["b.go"] != 0 || got["c.go"] != 1 {
		t.Errorf("%v", got)
	}
}
