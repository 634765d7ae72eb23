package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Version contains the values for templates of the table.
type Version struct {
	Version      string // "v1.36.3"
	Number       string // "1.36.3"
	Major, Minor string // "1", "36"
}

// Module is the module of a main package, as selected by the go.mod in the executable's directory.
type Module struct {
	Path    string
	Version Version
	Sum     string // the h1 sum of its content in go.sum
}

func (m Module) String() string { return m.Path + "@" + m.Version.Version }

// Source is a directory with its own go.mod and go.sum. Runs of the go command there use only these.
type Source struct {
	Directory string
	// Cache is an alternative directory for Go's build cache, or "" for the usual one.
	Cache string
}

// buildEnvironment excludes all settings of the machine that could change the result of a build.
func (s Source) buildEnvironment() []string {
	env := append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "GOAMD64=v1", "CGO_ENABLED=0", "GOWORK=off",
		"GOFLAGS=-mod=readonly",
		"GOEXPERIMENT=", "GOFIPS140=off", "GODEBUG=")
	if s.Cache != "" {
		env = append(env, "GOCACHE="+s.Cache)
	}
	return env
}

// goCommand runs the go command in the directory.
func (s Source) goCommand(ctx context.Context, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir, command.Env = s.Directory, s.buildEnvironment()
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("go %s in %s: %w: %s", arguments[0], s.Directory, err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}

// ModuleOf returns the module of a package.
func (s Source) ModuleOf(ctx context.Context, pkg string) (Module, error) {
	out, err := s.goCommand(ctx, "list", "-find", "-json=Module,Name", "--", pkg)
	if err != nil {
		return Module{}, err
	}
	var listed struct {
		Name   string
		Module *struct {
			Path, Version string
			Replace       *struct{ Path string }
		}
	}
	if err := json.Unmarshal(out, &listed); err != nil {
		return Module{}, fmt.Errorf("read what go list says of %s: %w", pkg, err)
	}
	switch {
	case listed.Name != "main":
		return Module{}, fmt.Errorf("%s is package %s and no program", pkg, listed.Name)
	case listed.Module == nil || listed.Module.Version == "":
		return Module{}, fmt.Errorf("%s comes from no module with a version", pkg)
	case listed.Module.Replace != nil:
		return Module{}, fmt.Errorf("%s comes from a module that is replaced by %s: its version would not be true", pkg,
			listed.Module.Replace.Path)
	}
	module := Module{Path: listed.Module.Path}
	if module.Version, err = parseVersion(listed.Module.Version); err != nil {
		return Module{}, fmt.Errorf("module %s: %w", module.Path, err)
	}
	sums, err := s.readSums()
	if err != nil {
		return Module{}, err
	}
	if module.Sum = sums[module.String()]; module.Sum == "" {
		return Module{}, fmt.Errorf("go.sum in %s has no sum for %s: run `go mod download` there", s.Directory, module)
	}
	return module, nil
}

// readSums returns the h1 sums of go.sum by module@version, without the sums of bare go.mod files.
func (s Source) readSums() (map[string]string, error) {
	data, err := os.ReadFile(filepath.Join(s.Directory, "go.sum"))
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && !strings.HasSuffix(fields[1], "/go.mod") {
			sums[fields[0]+"@"+fields[1]] = fields[2]
		}
	}
	return sums, nil
}

var released = regexp.MustCompile(`^v((\d+)\.(\d+)\.\d+(?:[-+][0-9A-Za-z.+-]+)?)$`)

func parseVersion(version string) (Version, error) {
	match := released.FindStringSubmatch(version)
	if match == nil {
		return Version{}, errors.New("version " + version + " is not a semantic version")
	}
	return Version{Version: version, Number: match[1], Major: match[2], Minor: match[3]}, nil
}
