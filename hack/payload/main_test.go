package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/payload"
)

const testTable = `
components:
- name: tool
  executables:
  - output: tool.exe
    module: tool
    package: example.org/tool
    variables:
      example.org/tool/version.Version: "{{.Version}}"
- name: cloud-tool
  platforms: [Azure]
  executables:
  - output: cloud-tool.exe
    module: tool
    package: example.org/tool
    variables:
      example.org/tool/version.Twice: "{{.Number}}"
- name: brought
  external: A tool of somebody else
  files: [wicd.exe]
  release: {image: the-tools, folder: opt/tools, program: wicd}
`

// testOptions builds the two tools of the table, and not the third component.
func testOptions(t *testing.T) (fixture, options) {
	t.Helper()
	f := newFixture(t)
	writeFile(t, filepath.Join(f.dir, "components.yaml"), testTable)
	return f, options{
		table: filepath.Join(f.dir, "components.yaml"), modules: f.modules, output: filepath.Join(f.dir, "payload"),
		bin: filepath.Join(f.dir, "bin"), agent: f.buildAgent(t), version: "10.0.0", scratch: filepath.Join(f.dir, "scratch"),
		allowMissing: "brought",
	}
}

func TestBuildPayload(t *testing.T) {
	f, o := testOptions(t)
	build := func(t *testing.T, change func(*options)) (*payload.Payload, string) {
		t.Helper()
		changed := o
		change(&changed)
		var log bytes.Buffer
		if err := run(t.Context(), changed, &log); err != nil {
			t.Fatal(err)
		}
		p, err := payload.Load(changed.output)
		if err != nil {
			t.Fatal(err)
		}
		return p, log.String()
	}

	t.Run("an executable can be had without a payload", func(t *testing.T) {
		only := o
		only.bin, only.output, only.executables = filepath.Join(f.dir, "only"), filepath.Join(f.dir, "no-payload"), "cloud-tool.exe"
		if err := run(t.Context(), only, io.Discard); err != nil {
			t.Fatal(err)
		}
		for name, exists := range map[string]bool{"only/cloud-tool/cloud-tool.exe": true, "only/tool": false, "no-payload": false} {
			if _, err := os.Stat(filepath.Join(f.dir, name)); (err == nil) != exists {
				t.Errorf("%s is there: %v", name, err == nil)
			}
		}
		only.executables = "another.exe"
		if err := run(t.Context(), only, io.Discard); err == nil || !strings.Contains(err.Error(), "another.exe") {
			t.Errorf("for one that no component has: %v", err)
		}
	})
	first, log := build(t, func(*options) {})
	t.Run("the operator can load it, and gives each platform what is for it", func(t *testing.T) {
		tool, _ := first.Manifest().Component("tool")
		if tool.Version != "v1.2.3" || tool.Source != "example.org/tool@v1.2.3" || tool.Files[0].Path != "tool.exe" || !tool.Required {
			t.Errorf("got %+v", tool)
		}
		if agent, err := first.Agent(); err != nil || agent.Path != "wicd.exe" {
			t.Errorf("agent %+v, error %v", agent, err)
		}
		if aws, azure := len(first.Components(payload.Target{Platform: "AWS"})), len(first.Components(payload.Target{Platform: "Azure"})); aws != 2 || azure != 3 {
			t.Errorf("AWS gets %d components, Azure %d", aws, azure)
		}
	})
	t.Run("an external component that nobody brought is missing in words", func(t *testing.T) {
		if err := first.Missing("brought", ""); err == nil || !strings.Contains(err.Error(), "A tool of somebody else") {
			t.Errorf("got error %v", err)
		}
		if !strings.Contains(log, "MISSING: brought: A tool of somebody else") {
			t.Errorf("the build says %s", log)
		}
	})
	t.Run("the report says of each executable how its version was shown", func(t *testing.T) {
		data, err := os.ReadFile(filepath.Join(o.output, "report.json"))
		if err != nil {
			t.Fatal(err)
		}
		var report Report
		if err := json.Unmarshal(data, &report); err != nil {
			t.Fatal(err)
		}
		if len(report.Executables) != 2 || report.Executables[0].VersionCheck.Method != methodVariables || !strings.HasPrefix(report.Executables[0].Sum, "h1:") {
			t.Errorf("got %+v", report.Executables)
		}
		if wire := report.WireBytes["1.36"]; report.RawBytes == 0 || wire == 0 || wire >= report.RawBytes {
			t.Errorf("got %d bytes raw and %v on the wire", report.RawBytes, report.WireBytes)
		}
		text, err := os.ReadFile(filepath.Join(o.output, "report.txt"))
		if err != nil || !strings.Contains(string(text), "tool.exe was not asked for its version") {
			t.Errorf("got %s, error %v", text, err)
		}
	})
	t.Run("a list of components builds only those, and the payload says what it lacks", func(t *testing.T) {
		p, _ := build(t, func(o *options) { o.components, o.output = "tool", filepath.Join(f.dir, "partial") })
		if err := p.Missing("cloud-tool", ""); err == nil || !strings.Contains(err.Error(), "make payload") || len(p.Manifest().Components) != 2 {
			t.Errorf("components %+v, error %v", p.Manifest().Components, err)
		}
	})
	t.Run("a new version comes with a patch from the previous payload, and leaves nothing of the old one behind", func(t *testing.T) {
		previous := filepath.Join(f.dir, "previous")
		if err := os.CopyFS(previous, os.DirFS(o.output)); err != nil {
			t.Fatal(err)
		}
		f.createModule(t, "tool", "v1.2.4")
		p, log := build(t, func(o *options) { o.previous = previous })
		now, _ := p.Manifest().Component("tool")
		before, _ := first.Manifest().Component("tool")
		patches := p.Patches(now.Files[0].SHA256)
		if len(patches) != 1 || patches[0].From != before.Files[0].SHA256 || patches[0].Size > now.Files[0].Size/10 {
			t.Errorf("got %+v for a file of %d bytes", patches, now.Files[0].Size)
		}
		if !strings.Contains(log, "Patch to tool.exe from") {
			t.Errorf("the build says %s", log)
		}
		if _, err := os.Stat(filepath.Join(o.output, "store", before.Files[0].SHA256+".zst")); err == nil {
			t.Error("the old executable is still in the store")
		}
	})
}

func TestBuildPayload_InvalidInputRejected(t *testing.T) {
	f, o := testOptions(t)
	writeFile(t, filepath.Join(o.output, "keep"), "")
	for name, test := range map[string]struct {
		change func(*options)
		want   string
	}{
		"of a component that does not exist": {func(o *options) {
			o.components = "tool kubelet"
		}, `no component "kubelet": the components are tool, cloud-tool, brought`},
		"with an agent that is another program": {func(o *options) {
			o.agent = filepath.Join(f.dir, "components.yaml")
		}, "not a Windows program"},
		"without a version":                {func(o *options) { o.version = "" }, "version is not given"},
		"with an invalid previous payload": {func(o *options) { o.previous = f.dir }, "earlier payload"},
		"over the payload that patches are made from": {func(o *options) {
			o.previous = o.output
		}, "copy it to another folder"},
	} {
		t.Run("a build "+name+" is refused", func(t *testing.T) {
			changed := o
			test.change(&changed)
			if err := run(t.Context(), changed, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v", err)
			}
		})
	}
}

func TestCompareBuilds(t *testing.T) {
	f, o := testOptions(t)
	cache, err := (Source{Directory: f.modules}).goCommand(t.Context(), "env", "GOCACHE")
	if err != nil {
		t.Fatal(err)
	}
	o.secondCache = strings.TrimSpace(string(cache)) // An empty cache takes a minute.
	o.components = "tool"
	var log bytes.Buffer
	t.Run("two builds in two places give the same bytes", func(t *testing.T) {
		if err := compareBuilds(t.Context(), o, mustSelect(t, o), &log); err != nil || !strings.Contains(log.String(),
			"tool.exe is the same twice") {
			t.Errorf("error %v: %s", err, log.String())
		}
	})
	t.Run("nothing is left behind", func(t *testing.T) {
		if _, err := os.Stat(o.scratch); err == nil {
			t.Error("the folder is still there")
		}
	})
	t.Run("one byte is a difference", func(t *testing.T) {
		a, b := filepath.Join(f.dir, "a"), filepath.Join(f.dir, "b")
		writeFile(t, a, "same")
		writeFile(t, b, "sane")
		if equal, err := isSameContent(a, b); equal || err != nil {
			t.Errorf("equal %v, error %v", equal, err)
		}
	})
}

func mustSelect(t *testing.T, o options) []Component {
	t.Helper()
	table, err := ReadTable(o.table, nil)
	if err != nil {
		t.Fatal(err)
	}
	components, err := table.Select(strings.Fields(o.components), nil)
	if err != nil {
		t.Fatal(err)
	}
	return components
}
