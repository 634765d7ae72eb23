package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
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
		"a component without a version":    {strings.Replace(good, "v4", `""`, 1), "not given"},
		"a component that is listed twice": {good + good, "twice"},
		"a component that is listed twice for a version": {
			withMinors(good, `["1.35", "1.36"]`) + withMinors(good, `["1.36"]`), "twice"},
		"a component that is listed for all and for a version": {good + withMinors(good, `["1.36"]`), "twice"},
		"a version of Kubernetes that is not served":           {withMinors(good, `["1.63"]`), "does not serve"},
		"a field that nobody knows":                            {strings.Replace(good, "source:", "sauce:", 1), "sauce"},
		"a file that is no program for Windows":                {"- component: brought\n  version: v4\n  source: here\n  files:\n  - file: text/wicd.exe\n    sha256: " + textSum(t, f) + "\n", "not a Windows program"},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			if _, err := readExternals(list(t, test.text), table); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v", err)
			}
		})
	}
}

// withMinors restricts a component of a list to minor versions of Kubernetes.
func withMinors(list, minors string) string {
	return strings.Replace(list, "- component: brought\n", "- component: brought\n  minors: "+minors+"\n", 1)
}

func TestExternalsByName_MissingMinors(t *testing.T) {
	minors := []string{"1.35", "1.36", "1.37"}
	externals := externalsByName{"all": {{}}, "some": {{Minors: []string{"1.35"}}, {Minors: []string{"1.37"}}}}
	for name, want := range map[string][]string{"all": {}, "some": {"1.36"}, "none": minors} {
		if got := externals.missingMinors(name, minors); !slices.Equal(got, want) {
			t.Errorf("%s is missing for %q, want %q", name, got, want)
		}
	}
	c := Component{Name: "some", External: "x"}
	if err := refuseMissing([]Component{c}, externals, minors, nil); err == nil || !strings.Contains(err.Error(), "1.36") {
		t.Errorf("error %v", err)
	}
	if err := refuseMissing([]Component{c}, externals, minors, []string{"some"}); err != nil {
		t.Error(err)
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
