package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/payload"
)

// Builder builds components.
type Builder struct {
	Modules string // parent directory of the module directories
	Bin     string // output directory for executables, with a directory per component
	Cache   string // see Source
	// Runner runs programs. If programs cannot be run, Runner is nil and NoRunnerReason is the reason.
	Runner         ProgramRunner
	NoRunnerReason error
	Log            io.Writer
}

// Built is an executable that was built and checked.
type Built struct {
	Executable
	Component    string // name with the minor version of Kubernetes
	File         string // path of the executable
	From         Module
	Go           string // the Go version of the build
	VersionCheck VersionCheck
	Size         int64 // in bytes
	SHA256       string
}

// Component builds and checks the executables of a component, one after the other: linking a large executable
// requires gigabytes of memory.
func (b Builder) Component(ctx context.Context, c Component) ([]Built, error) {
	dir := filepath.Join(append([]string{b.Bin, c.Name}, c.Minors...)...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var list []Built
	for _, e := range c.Executables {
		built, err := b.buildExecutable(ctx, e, filepath.Join(dir, e.Output))
		if err != nil {
			return nil, fmt.Errorf("component %s: %w", c, err)
		}
		built.Component = c.String()
		list = append(list, built)
	}
	return list, nil
}

func (b Builder) buildExecutable(ctx context.Context, e Executable, output string) (Built, error) {
	source := Source{Directory: filepath.Join(b.Modules, e.Module), Cache: b.Cache}
	module, err := source.ModuleOf(ctx, e.Package)
	if err != nil {
		return Built{}, err
	}
	fmt.Fprintf(b.Log, "%s from %s", e.Output, module)
	start := time.Now()
	if err := source.Build(ctx, e, module, output); err != nil {
		fmt.Fprintln(b.Log)
		return Built{}, err
	}
	fmt.Fprintf(b.Log, ", built in %s\n", time.Since(start).Round(time.Second))
	sums, err := source.readSums()
	if err != nil {
		return Built{}, err
	}
	goVersion, err := checkBuildInfo(output, e, module, sums)
	if err != nil {
		return Built{}, err
	}
	proof, err := verifyVersion(ctx, b.Runner, b.NoRunnerReason, output, e, module.Version)
	if err != nil {
		return Built{}, err
	}
	built := Built{Executable: e, File: output, From: module, Go: goVersion, VersionCheck: proof}
	if built.SHA256, err = fileDigest(output); err != nil {
		return Built{}, err
	}
	info, err := os.Stat(output)
	if err != nil {
		return Built{}, err
	}
	built.Size = info.Size()
	return built, nil
}

// newSource returns the payload source of a component with executables. A fault of a component for one minor version of
// Kubernetes affects only the clusters of that version.
func (c Component) newSource(list []Built) payload.Source {
	var origins []string
	source := payload.Source{Component: payload.Component{
		Name: c.Name, Version: list[0].From.Version.Version, Required: len(c.Minors) == 0, Platforms: c.Platforms, Minors: c.Minors,
	}}
	for _, built := range list {
		if origin := built.From.String(); !slices.Contains(origins, origin) {
			origins = append(origins, origin)
		}
		addFile(&source, built.Output, built.File)
	}
	source.Source = strings.Join(origins, ", ")
	return source
}

// newSource returns the payload source of an external component.
func (e External) newSource(c Component) payload.Source {
	source := payload.Source{Component: payload.Component{
		Name: c.Name, Version: e.Version, Source: e.Source, Required: len(e.Minors) == 0, Platforms: c.Platforms, Minors: e.Minors,
	}}
	for _, f := range e.Files {
		addFile(&source, filepath.Base(f.File), f.File)
	}
	return source
}

func addFile(source *payload.Source, name, file string) {
	source.Files = append(source.Files, payload.File{Path: name})
	source.Content = append(source.Content, func() (io.ReadCloser, error) { return os.Open(file) })
}

// agentPackage is the main package that identifies the agent.
const agentPackage = "github.com/windows-machine-config/wmco/cmd/wicd"

// agentSource returns the payload source of the agent. The agent is built with the operator from the same tree, and
// has the operator's version.
func agentSource(file, version string) (payload.Source, error) {
	if file == "" || version == "" {
		return payload.Source{}, errors.New("the agent's executable or the operator's version is not given")
	}
	if err := checkAgent(file); err != nil {
		return payload.Source{}, fmt.Errorf("the agent: %w; build it with `make build/wicd.exe`", err)
	}
	source := payload.Source{Component: payload.Component{
		Name: payload.ComponentAgent, Version: version, Source: agentPackage + "@" + version, Required: true,
	}}
	addFile(&source, "wicd.exe", file)
	return source, nil
}
