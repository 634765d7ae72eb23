package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBuilder(t *testing.T) {
	f := newFixture(t)
	builder := Builder{Modules: f.modules, Bin: filepath.Join(f.dir, "bin"), NoRunnerReason: errors.New("no Wine here"), Log: io.Discard}
	build := func(change func(*Executable)) (Built, error) {
		e := newTool()
		change(&e)
		list, err := builder.Component(t.Context(), Component{Name: "tool", Executables: []Executable{e}})
		if err != nil {
			return Built{}, err
		}
		return list[0], nil
	}
	refused := func(t *testing.T, want string, change func(*Executable)) {
		t.Helper()
		if _, err := build(change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}

	t.Run("the version comes from the module, and the executable has it in each variable", func(t *testing.T) {
		built, err := build(func(*Executable) {})
		if err != nil {
			t.Fatal(err)
		}
		if built.From.String() != "example.org/tool@v1.2.3" || built.From.Version.Number != "1.2.3" || built.From.Version.Major != "1" || built.From.Version.Minor != "2" {
			t.Errorf("got %+v", built.From)
		}
		if built.VersionCheck.Method != methodVariables || !strings.HasPrefix(built.VersionCheck.Detail, "2 of 2") || built.VersionCheck.NotRunReason != "no Wine here" {
			t.Errorf("got %+v", built.VersionCheck)
		}
	})
	t.Run("a variable that the program does not have is found out, though the linker says nothing", func(t *testing.T) {
		refused(t, "has set 2: the others do not exist", func(e *Executable) { e.Variables["example.org/tool/version.Typo"] = "{{.Version}}" })
	})
	t.Run("a variable that the program does not use is found out", func(t *testing.T) {
		refused(t, "are not used", func(e *Executable) { e.Variables["example.org/tool/version.Unused"] = "{{.Version}}" })
	})
	t.Run("the version in build information and file names is no proof", func(t *testing.T) {
		refused(t, "set 1 variables to v1.2.3 and has set 0", func(e *Executable) {
			e.Variables = map[string]string{"example.org/tool/version.Typo": "{{.Version}}"}
		})
	})
	t.Run("a program that keeps no version is said to", func(t *testing.T) {
		built, err := build(func(e *Executable) { e.Variables, e.Question = nil, nil })
		if err != nil || built.VersionCheck.Method != methodBuildInfo {
			t.Errorf("got %+v, error %v", built.VersionCheck, err)
		}
	})
	t.Run("a package that is no program is refused", func(t *testing.T) {
		refused(t, "no program", func(e *Executable) { e.Package = "example.org/tool/version" })
	})
	t.Run("a package that go.mod does not have is refused", func(t *testing.T) {
		refused(t, "example.org/other", func(e *Executable) { e.Package = "example.org/other" })
	})
	t.Run("a program of the folder itself, which has no version, is refused", func(t *testing.T) {
		writeFile(t, filepath.Join(f.modules, "own", "go.mod"), "module example.org/own\n\ngo 1.26.0\n")
		writeFile(t, filepath.Join(f.modules, "own", "main.go"), "package main\n\nfunc main() {}\n")
		refused(t, "no module with a version", func(e *Executable) { e.Module, e.Package = "own", "example.org/own" })
	})
	t.Run("a replaced module is refused: its version would not be true", func(t *testing.T) {
		f.createModule(t, "replaced", "v1.2.3")
		path := filepath.Join(f.modules, "replaced", "go.mod")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, string(data)+"\nreplace example.org/tool v1.2.3 => example.org/tool v1.2.4\n")
		writeFile(t, filepath.Join(f.modules, "replaced", "go.sum"), bothSums(t, f))
		refused(t, "replaced by example.org/tool", func(e *Executable) { e.Module = "replaced" })
	})
	t.Run("a sum that is not the module's is refused", func(t *testing.T) {
		f.createModule(t, "tampered", "v1.2.3")
		path := filepath.Join(f.modules, "tampered", "go.sum")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, strings.Replace(string(data), "v1.2.3 h1:", "v1.2.3 h1:AAAA", 1))
		refused(t, "checksum mismatch", func(e *Executable) { e.Module = "tampered" })
	})
}

// bothSums returns a go.sum with both versions of the tool.
func bothSums(t *testing.T, f fixture) string {
	t.Helper()
	sums := ""
	for _, version := range []string{"v1.2.3", "v1.2.4"} {
		f.createModule(t, "sums", version)
		data, err := os.ReadFile(filepath.Join(f.modules, "sums", "go.sum"))
		if err != nil {
			t.Fatal(err)
		}
		sums += string(data)
	}
	return sums
}

func TestCheckBuildInfo(t *testing.T) {
	f := newFixture(t)
	builder := Builder{Modules: f.modules, Bin: filepath.Join(f.dir, "bin"),
		NoRunnerReason: errors.New("no Wine"), Log: io.Discard}
	list, err := builder.Component(t.Context(), Component{Name: "tool", Executables: []Executable{newTool()}})
	if err != nil {
		t.Fatal(err)
	}
	file, good := list[0].File, list[0].From
	for name, test := range map[string]struct {
		change func(*Module, *Executable)
		want   string
	}{
		"of another version": {func(m *Module, _ *Executable) {
			m.Version.Version = "v1.2.4"
		}, `version "v1.2.3", and it must be "v1.2.4"`},
		"of other content":   {func(m *Module, _ *Executable) { m.Sum = "h1:other" }, "sum"},
		"of another module":  {func(m *Module, _ *Executable) { m.Path = "example.org/other" }, "module"},
		"of another package": {func(_ *Module, e *Executable) { e.Package = "example.org/tool/cmd" }, "package"},
	} {
		t.Run("an executable "+name+" is refused", func(t *testing.T) {
			m, e := good, newTool()
			test.change(&m, &e)
			if _, err := checkBuildInfo(file, e, m, nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v", err)
			}
		})
	}
	t.Run("what was not built for Windows is refused", func(t *testing.T) {
		own, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := checkBuildInfo(own, newTool(), good, nil); err == nil || !strings.Contains(err.Error(), `GOOS "linux"`) {
			t.Errorf("got error %v", err)
		}
		if checkExecutable(own) == nil {
			t.Error("the test itself was taken for a Windows program")
		}
	})
}
