package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/internal/payload"
)

// Table is the content of payload/components.yaml, which describes each field.
type Table struct {
	Components []Component `json:"components"`
}

// Component is a set of files that are installed and replaced together.
type Component struct {
	Name string `json:"name"`
	// PerKubernetes is true for a component with a build for each minor version of Kubernetes. Minors is the version of
	// the build, and empty for all other components.
	PerKubernetes bool     `json:"kubernetes,omitempty"`
	Minors        []string `json:"-"`
	Platforms     []string `json:"platforms,omitempty"`
	// External describes a component that is not built here.
	External string `json:"external,omitempty"`
	// Files lists the files of an external component.
	Files []string `json:"files,omitempty"`
	// Release is the location of an external component in an OpenShift release.
	Release *InRelease `json:"release,omitempty"`
	// InSource is the location of an external component in a source tree.
	InSource *InSource `json:"source,omitempty"`
	// Flags lists the flags that nodes pass to an external component, without dashes.
	Flags       []string     `json:"flags,omitempty"`
	Executables []Executable `json:"executables,omitempty"`
}

// InRelease is the location of a component's files in an OpenShift release.
type InRelease struct {
	Image     string `json:"image"`  // the component's tag in the release's image-references
	Directory string `json:"folder"` // directory in the image
	// Program is the last path element of the files' main package.
	Program string `json:"program"`
}

// InSource is the location of a component's program in a source tree.
type InSource struct {
	Directory string `json:"folder"`  // directory of its Go module
	Package   string `json:"package"` // the main package, relative to that directory
}

// Executable is a program with its build settings.
type Executable struct {
	Output    string            `json:"output"`
	Module    string            `json:"module"` // directory of its go.mod, below the modules directory
	Package   string            `json:"package"`
	Tags      []string          `json:"tags,omitempty"`
	Variables map[string]string `json:"variables,omitempty"` // templates over Version
	Question  *Question         `json:"version,omitempty"`
}

// Question describes how to query a program for its version.
type Question struct {
	Arguments []string `json:"arguments,omitempty"`
	Answer    string   `json:"answer"` // a template over Version that the output must contain
}

// ReadTable reads the table and returns an error for an invalid table. Components with a build for each minor version of
// Kubernetes are in the table once for each of the given versions.
func ReadTable(file string, minors []string) (Table, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Table{}, fmt.Errorf("read the table of components: %w", err)
	}
	var table Table
	if err := yaml.UnmarshalStrict(data, &table); err != nil {
		return Table{}, fmt.Errorf("read the table of components %s: %w", file, err)
	}
	if err := table.validate(); err != nil {
		return Table{}, fmt.Errorf("the table of components %s is not valid: %w", file, err)
	}
	return table.expand(minors), nil
}

func (t Table) expand(minors []string) Table {
	var expanded Table
	for _, c := range t.Components {
		if !c.PerKubernetes {
			expanded.Components = append(expanded.Components, c)
			continue
		}
		for _, minor := range minors {
			build := c
			build.Minors, build.Executables = []string{minor}, slices.Clone(c.Executables)
			for i := range build.Executables {
				build.Executables[i].Module += "-" + minor
			}
			expanded.Components = append(expanded.Components, build)
		}
	}
	return expanded
}

// String returns the name of the component, with its minor version of Kubernetes.
func (c Component) String() string { return payload.Component{Name: c.Name, Minors: c.Minors}.String() }

var executableName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*\.exe$`)

func (t Table) validate() error {
	var faults []error
	names, outputs := map[string]bool{}, map[string]bool{}
	for _, c := range t.Components {
		if c.Name == "" || names[c.Name] {
			faults = append(faults, fmt.Errorf("component %q has no name or is listed twice", c.Name))
		}
		names[c.Name] = true
		if c.PerKubernetes && c.External != "" {
			faults = append(faults, fmt.Errorf("component %s: an external component has no builds for versions of Kubernetes", c.Name))
		}
		if (c.External != "") == (len(c.Executables) > 0) {
			faults = append(faults, fmt.Errorf("component %s: it must have either executables or external", c.Name))
		}
		if (c.External != "") != (len(c.Files) > 0) {
			faults = append(faults, fmt.Errorf("component %s: an external component, and no other, names its files", c.Name))
		}
		if r := c.Release; r != nil && (c.External == "" || r.Image == "" || r.Directory == "" || r.Program == "") {
			faults = append(faults, fmt.Errorf("component %s: release needs image, folder and program, of an external component",
				c.Name))
		}
		if s := c.InSource; s != nil && (len(c.Files) != 1 || s.Directory == "" || s.Package == "") {
			faults = append(faults, fmt.Errorf("component %s: source needs folder and package, of an external component with one file",
				c.Name))
		}
		for _, e := range c.Executables {
			if outputs[e.Output] {
				faults = append(faults, fmt.Errorf("%s is built twice", e.Output))
			}
			outputs[e.Output] = true
			faults = append(faults, e.validate())
		}
	}
	return errors.Join(faults...)
}

func (e Executable) validate() error {
	var faults []error
	if !executableName.MatchString(e.Output) {
		faults = append(faults, fmt.Errorf("output %q is not the file name of an executable", e.Output))
	}
	if e.Module == "" || e.Module != path.Base(e.Module) || e.Package == "" {
		faults = append(faults, fmt.Errorf("%s: module %q is not the name of a folder, or package %q is empty", e.Output,
			e.Module, e.Package))
	}
	if _, err := e.linkVariables(Version{}); err != nil {
		faults = append(faults, err)
	}
	if e.Question != nil && e.Question.Answer == "" {
		faults = append(faults, fmt.Errorf("%s: a version question without an answer", e.Output))
	}
	return errors.Join(faults...)
}

// Select returns the components with the names, or all components without names. Of the builds for minor versions of
// Kubernetes, it returns only those for the given versions, or all without versions.
func (t Table) Select(names, minors []string) ([]Component, error) {
	for _, name := range names {
		if !slices.ContainsFunc(t.Components, func(c Component) bool { return c.Name == name }) {
			return nil, fmt.Errorf("there is no component %q: the components are %s", name, strings.Join(t.componentNames(), ", "))
		}
	}
	for _, minor := range minors {
		if !slices.ContainsFunc(t.Components, func(c Component) bool { return slices.Contains(c.Minors, minor) }) {
			return nil, fmt.Errorf("the operator does not serve Kubernetes %s", minor)
		}
	}
	var selected []Component
	for _, c := range t.Components {
		isNamed := len(names) == 0 || slices.Contains(names, c.Name)
		if isNamed && (len(minors) == 0 || len(c.Minors) == 0 || slices.Contains(minors, c.Minors[0])) {
			selected = append(selected, c)
		}
	}
	return selected, nil
}

func (t Table) componentNames() []string {
	var names []string
	for _, c := range t.Components {
		if !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

// linkVariables inserts the version into the values. Values that require quoting are refused.
func (e Executable) linkVariables(v Version) (map[string]string, error) {
	values := map[string]string{}
	for name, text := range e.Variables {
		value, err := executeTemplate(text, v)
		if err != nil {
			return nil, fmt.Errorf("%s: variable %s: %w", e.Output, name, err)
		}
		if strings.ContainsAny(name+value, "'\" \t\n\\") {
			return nil, fmt.Errorf("%s: variable %s=%s has a quote, a space or a backslash", e.Output, name, value)
		}
		values[name] = value
	}
	return values, nil
}

// executeTemplate executes a template with a version.
func executeTemplate(text string, v Version) (string, error) {
	parsed, err := template.New("").Parse(text)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := parsed.Execute(&b, v); err != nil {
		return "", err
	}
	return b.String(), nil
}
