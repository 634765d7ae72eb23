package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

func TestExternalComponents(t *testing.T) {
	f, o := testOptions(t)
	sum, err := fileDigest(o.agent) // any Windows program will do
	if err != nil {
		t.Fatal(err)
	}
	list := func(t *testing.T, text string) string {
		t.Helper()
		path := filepath.Join(f.dir, "agent", "external.yaml")
		writeFile(t, path, text)
		return path
	}
	good := "- component: brought\n  version: v4\n  source: registry.example.org/brought@sha256:12\n  files:\n  - file: wicd.exe\n    sha256: " + sum + "\n"

	t.Run("what is brought is in the payload", func(t *testing.T) {
		o := o
		o.external, o.components = list(t, good), "tool"
		if err := run(t.Context(), o, &bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
		p, err := payload.Load(o.output)
		if err != nil {
			t.Fatal(err)
		}
		c, ok := p.Manifest().Component("brought")
		if !ok || c.Version != "v4" || c.Source != "registry.example.org/brought@sha256:12" || c.Files[0].SHA256 != sum ||
			p.Missing("brought", "") != nil {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("a whole payload without it is refused before anything is built", func(t *testing.T) {
		o := o
		o.allowMissing, o.bin = "", filepath.Join(f.dir, "nothing-built")
		err := run(t.Context(), o, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), "EXTERNAL=") || !strings.Contains(err.Error(), "RELEASE=") ||
			!strings.Contains(err.Error(), "ALLOW_MISSING=brought") {
			t.Errorf("got error %v", err)
		}
		if _, err := os.Stat(o.bin); err == nil {
			t.Error("programs were built")
		}
	})
	table := mustTable(t, o.table)
	for name, test := range map[string]struct{ text, want string }{
		"a file with another digest": {strings.Replace(good, sum, strings.Repeat("0", 64), 1),
			"it is another file, or it was changed"},
		"a file with a name that hosts do not know": {strings.Replace(good, "wicd.exe", "wicd-v4.exe", 1),
			"hosts find them by their names"},
		"a file that is not there": {strings.Replace(good, "wicd.exe", "none/wicd.exe", 1), "none/wicd.exe"},
		"a component that is not external": {strings.Replace(good, "brought", "tool", 1),
			"no external component of that name"},
		"a component without a version":         {strings.Replace(good, "v4", `""`, 1), "not given"},
		"a component that is listed twice":      {good + good, "twice"},
		"a field that nobody knows":             {strings.Replace(good, "source:", "sauce:", 1), "sauce"},
		"a file that is no program for Windows": {"- component: brought\n  version: v4\n  source: here\n  files:\n  - file: text/wicd.exe\n    sha256: " + textSum(t, f) + "\n", "not a Windows program"},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			if _, err := readExternals(list(t, test.text), table); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v", err)
			}
		})
	}
}

func textSum(t *testing.T, f fixture) string {
	t.Helper()
	path := filepath.Join(f.dir, "agent", "text", "wicd.exe")
	writeFile(t, path, "no program")
	sum, err := fileDigest(path)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func mustTable(t *testing.T, file string) Table {
	t.Helper()
	table, err := ReadTable(file, support.CurrentLine().KubernetesMinors())
	if err != nil {
		t.Fatal(err)
	}
	return table
}
