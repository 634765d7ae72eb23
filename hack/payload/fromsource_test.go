package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/payload"
)

// overlayTable contains a component of the shape of hybrid-overlay-node.
const overlayTable = `
components:
- name: overlay
  external: An agent of somebody else
  files: [overlay-node.exe]
  source: {folder: controller, package: overlay/cmd/overlay-node}
  flags: [node, windows-service]
`

// overlaySources contains sources of that shape: a module in a directory of the repository, with vendored
// dependencies, a replaced dependency, and a deeply nested program.
var overlaySources = map[string]string{
	"README.md":         "Not a part of the module.\n",
	"controller/go.mod": "module example.org/overlay/controller\n\ngo 1.26.0\n\nrequire example.org/names v1.0.0\n\nreplace example.org/names => example.org/fork/names v1.0.1\n",
	"controller/vendor/modules.txt": "# example.org/names v1.0.0 => example.org/fork/names v1.0.1\n## explicit; go 1.26.0\nexample.org/names\n" +
		"# example.org/names => example.org/fork/names v1.0.1\n",
	"controller/vendor/example.org/names/names.go": "package names\n\nconst Node = \"node\"\n",
	"controller/overlay/cmd/overlay-node/main.go": `package main

import (
	"flag"

	"example.org/names"
)

func main() {
	_, _ = flag.String(names.Node, "", "the node"), flag.Bool("windows-service", false, "run as a service")
	flag.Parse()
}
`,
}

// overlayOptions returns the options of a build from sources in a checkout with a given sum.
func overlayOptions(t *testing.T) options {
	t.Helper()
	f, o := testOptions(t)
	o.table, o.allowMissing, o.source = filepath.Join(f.dir, "overlay.yaml"), "", filepath.Join(f.dir, "checkout")
	writeFile(t, o.table, overlayTable)
	for name, content := range overlaySources {
		writeFile(t, filepath.Join(o.source, name), content)
	}
	o.sourceSum = sumIn(t, run(t.Context(), o, io.Discard))
	return o
}

// sumIn returns the sum in the error for sources without a given sum.
func sumIn(t *testing.T, refusal error) string {
	t.Helper()
	if refusal == nil {
		t.Fatal("sources without a sum are built")
	}
	_, sum, has := strings.Cut(refusal.Error(), "SOURCE_SUM=")
	if !has || !strings.HasPrefix(sum, "h1:") || strings.Contains(refusal.Error(), "\n") {
		t.Fatalf("it says %q", refusal)
	}
	return sum
}

// writeSourceArchive writes files as a compressed archive, below a directory.
func writeSourceArchive(t *testing.T, below string, files map[string]string) string {
	t.Helper()
	var data bytes.Buffer
	compressed := gzip.NewWriter(&data)
	w := tar.NewWriter(compressed)
	for name, content := range files {
		err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: below + name, Mode: 0o600, Size: int64(len(content))})
		if err == nil {
			_, err = w.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "sources.tar.gz")
	writeFile(t, name, data.String())
	return name
}

func overlayOf(t *testing.T, o options) payload.Component {
	t.Helper()
	if err := run(t.Context(), o, io.Discard); err != nil {
		t.Fatal(err)
	}
	p, err := payload.Load(o.output)
	if err != nil {
		t.Fatal(err)
	}
	c, has := p.Manifest().Component("overlay")
	if !has || p.Missing("overlay", "") != nil {
		t.Fatalf("the payload does not have it: %v", p.Missing("overlay", ""))
	}
	return c
}

func TestFromSource_BuildsComponent(t *testing.T) {
	o := overlayOptions(t)
	c := overlayOf(t, o)
	t.Run("manifest and report name the sum of the sources", func(t *testing.T) {
		if c.Source != "example.org/overlay/controller, source tree "+o.sourceSum || !strings.HasPrefix(c.Version, "v0.0.0-") {
			t.Errorf("it is version %s of %s", c.Version, c.Source)
		}
		report, err := os.ReadFile(filepath.Join(o.output, "report.txt"))
		if err != nil || !strings.Contains(string(report), "source tree with the sum "+o.sourceSum) ||
			!strings.Contains(string(report), "the names of all flags that nodes give it are in the executable") {
			t.Errorf("error %v; the report:\n%s", err, report)
		}
	})
	t.Run("an archive of the same sources gives the same bytes, by the same sum", func(t *testing.T) {
		from := o
		from.source, from.output, from.bin = writeSourceArchive(t, "overlay-4f2c1d/", overlaySources), t.TempDir(), t.TempDir()
		if other := overlayOf(t, from); other.Files[0].SHA256 != c.Files[0].SHA256 {
			t.Errorf("it is %+v, and from the checkout %+v", other, c)
		}
	})
	t.Run("and nothing is left of them", func(t *testing.T) {
		left, err := os.ReadDir(filepath.Join(o.bin, "overlay"))
		if err != nil || len(left) != 1 || left[0].Name() != "overlay-node.exe" {
			t.Errorf("there is %v, error %v", left, err)
		}
	})
}

func TestFromSource_InvalidSourceRejectedInOneSentence(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, o *options)
		want   string
	}{
		"that are not there": {func(_ *testing.T, o *options) { o.source = "none/checkout" }, "none/checkout"},
		"with a changed file": {func(t *testing.T, o *options) {
			writeFile(t, filepath.Join(o.source, "controller/vendor/example.org/names/names.go"), "package names\n\nconst Node = \"nodes\"\n")
		}, "instead of the expected SOURCE_SUM="},
		"with a file more": {func(t *testing.T, o *options) {
			writeFile(t, filepath.Join(o.source, "controller/overlay/cmd/overlay-node/more.go"), "package main\n")
		}, "it was changed"},
		"without their module": {func(t *testing.T, o *options) {
			if err := os.RemoveAll(filepath.Join(o.source, "controller")); err != nil {
				t.Fatal(err)
			}
		}, "controller"},
		"without the program": {func(t *testing.T, o *options) {
			if err := os.RemoveAll(filepath.Join(o.source, "controller/overlay")); err != nil {
				t.Fatal(err)
			}
			again := *o
			again.sourceSum = ""
			o.sourceSum = sumIn(t, run(t.Context(), again, io.Discard))
		}, "overlay/cmd/overlay-node"},
		"in a file that is no archive": {func(t *testing.T, o *options) {
			o.source = filepath.Join(t.TempDir(), "sources.tar.gz")
			writeFile(t, o.source, "no archive")
		}, "no tar file"},
		"in an archive that is cut off": {func(t *testing.T, o *options) {
			o.source = writeSourceArchive(t, "", overlaySources)
			if err := os.Truncate(o.source, 200); err != nil {
				t.Fatal(err)
			}
		}, "unexpected EOF"},
		"in an archive that writes outside of its folder": {func(t *testing.T, o *options) {
			o.source = writeSourceArchive(t, "", map[string]string{"controller/../../../escaped": "x"})
		}, "escapes"},
		"without a flag that nodes give": {func(t *testing.T, o *options) {
			writeFile(t, o.table, strings.Replace(overlayTable, "windows-service", "as-a-service, windows-service", 1))
		}, "does not have the flags --as-a-service"},
		"beside a list that has the same": {func(t *testing.T, o *options) {
			file := filepath.Join(t.TempDir(), "overlay-node.exe")
			writeFile(t, file, string(readProgram(t, o.agent)))
			sum, err := fileDigest(file)
			if err != nil {
				t.Fatal(err)
			}
			o.external = filepath.Join(t.TempDir(), "list.yaml")
			writeFile(t, o.external, "- component: overlay\n  version: v4\n  source: here\n  files:\n  - file: "+file+"\n    sha256: "+sum+"\n")
		}, "give one of them"},
		"whose sum alone is given": {func(_ *testing.T, o *options) { o.source = "" }, "give SOURCE= too"},
	} {
		t.Run(name, func(t *testing.T) {
			o := overlayOptions(t)
			test.change(t, &o)
			err := run(t.Context(), o, io.Discard)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got error %v", err)
			}
			if _, err := os.Stat(o.output); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it leaves a payload: %v", err)
			}
			if escaped, _ := filepath.Glob(filepath.Join(o.bin, "escaped")); len(escaped) > 0 {
				t.Errorf("it has written %v", escaped)
			}
		})
	}
}

func TestCheckFlags_ComparedWithProgramHelp(t *testing.T) {
	const help = "OPTIONS:\n   --node value\n   --windows-service  (default: false)\n   --help, -h\n"
	file := filepath.Join(t.TempDir(), "overlay-node.exe")
	writeFile(t, file, "MZ node windows-service cert-dir")
	for name, test := range map[string]struct {
		runner  ProgramRunner
		flags   []string
		missing string // "" for none
		how     string
	}{
		"it lists all": {oracle{answer: help}, []string{"node", "windows-service"}, "", "its help under Wine"},
		"it lists all, and ends with an error": {oracle{answer: help, err: errors.New("exit status 2")}, []string{"node"}, "",
			"its help under Wine"},
		"what is in the executable, and not in the help": {oracle{answer: help}, []string{"node", "cert-dir"}, "--cert-dir", ""},
		"another flag begins like it":                    {oracle{answer: help}, []string{"windows"}, "--windows", ""},
		"another flag ends like it":                      {oracle{answer: help}, []string{"service"}, "--service", ""},
		"it does not start":                              {oracle{err: errors.New("exit status 1")}, []string{"node", "cert-dir"}, "", "exit status 1"},
		"there is no Wine":                               {nil, []string{"node", "cert-dir"}, "", "no Wine here"},
		"there is no Wine, and the executable lacks one": {nil, []string{"node", "loglevel"}, "--loglevel", ""},
	} {
		t.Run(name, func(t *testing.T) {
			how, err := checkProgramFlags(t.Context(), Builder{Runner: test.runner, NoRunnerReason: errors.New("no Wine here")}, file, test.flags)
			if (err != nil) != (test.missing != "") || err != nil && !strings.Contains(err.Error(), test.missing) {
				t.Fatalf("got error %v", err)
			}
			if err == nil && !strings.Contains(how, test.how) {
				t.Errorf("it was shown so: %s", how)
			}
		})
	}
}
