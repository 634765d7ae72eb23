package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const toolMain = `package main

import "example.org/tool/version"

func main() { println("tool version", version.Version, version.Twice) }
`

const toolVersion = `package version

var (
	Version = "unknown"
	Twice   = "unknown"
	Unused  = "unknown"
)
`

// fixture is a module proxy with the module example.org/tool, and a directory of modules to build the tool.
type fixture struct {
	dir, modules string
}

// newFixture creates everything that a build needs without a network. Only Go's build cache is the usual one.
func newFixture(t *testing.T) fixture {
	t.Helper()
	dir := t.TempDir()
	f := fixture{dir: dir, modules: filepath.Join(dir, "modules")}
	t.Setenv("GOPROXY", "file://"+filepath.ToSlash(filepath.Join(dir, "proxy")))
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GONOPROXY", "none")
	t.Setenv("GOMODCACHE", filepath.Join(dir, "modcache"))
	t.Cleanup(func() { makeWritable(t, filepath.Join(dir, "modcache")) })
	for _, version := range []string{"v1.2.3", "v1.2.4"} {
		f.publishVersion(t, version)
	}
	f.createModule(t, "tool", "v1.2.3")
	return f
}

// makeWritable makes the module cache deletable, which Go writes read-only.
func makeWritable(t *testing.T, dir string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o755)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// publishVersion adds a version of the tool to the proxy. Each version has a different text.
func (f fixture) publishVersion(t *testing.T, version string) {
	t.Helper()
	goMod := "module example.org/tool\n\ngo 1.26.0\n"
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for name, content := range map[string]string{"go.mod": goMod, "main.go": toolMain, "version/version.go": toolVersion} {
		file, err := w.Create("example.org/tool@" + version + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(f.dir, "proxy", "example.org", "tool", "@v", version)
	writeFile(t, at+".info", `{"Version":"`+version+`"}`)
	writeFile(t, at+".mod", goMod)
	writeFile(t, at+".zip", archive.String())
}

// createModule creates a directory to build a version of the tool.
func (f fixture) createModule(t *testing.T, name, version string) {
	t.Helper()
	dir := filepath.Join(f.modules, name)
	writeFile(t, filepath.Join(dir, "go.mod"), "module example.org/payload/"+name+
		"\n\ngo 1.26.0\n\ntool example.org/tool\n\nrequire example.org/tool "+version+"\n")
	command := exec.Command("go", "mod", "tidy")
	command.Dir = dir
	command.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("go mod tidy: %v: %s", err, out)
	}
}

// buildAgent builds a program with the agent's name.
func (f fixture) buildAgent(t *testing.T) string { return f.buildProgram(t, "wicd") }

// buildProgram builds a program with another name next to the agent.
func (f fixture) buildProgram(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(f.dir, "agent")
	writeFile(t, filepath.Join(dir, "go.mod"), "module "+strings.TrimSuffix(agentPackage,
		"/cmd/wicd")+"\n\ngo 1.26.0\n")
	writeFile(t, filepath.Join(dir, "cmd", name, "main.go"), "package main\n\nfunc main() {}\n")
	output := filepath.Join(dir, name+".exe")
	if _, err := (Source{Directory: dir}).goCommand(t.Context(), "build", "-o", output, "./cmd/"+name); err != nil {
		t.Fatal(err)
	}
	return output
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// newTool returns the executable of the tool with the variables that it should have.
func newTool() Executable {
	return Executable{
		Output: "tool.exe", Module: "tool", Package: "example.org/tool",
		Variables: map[string]string{"example.org/tool/version.Version": "{{.Version}}",
			"example.org/tool/version.Twice": "{{.Version}}"},
		Question: &Question{Arguments: []string{"--version"}, Answer: "tool version {{.Version}}"},
	}
}

// oracle returns the answer that the test has set.
type oracle struct {
	answer string
	err    error
}

func (o oracle) RunProgram(context.Context, string, []string) (string, error) { return o.answer, o.err }
