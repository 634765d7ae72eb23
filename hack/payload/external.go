package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// External is a component that the builder of the image provides.
type External struct {
	Component string `json:"component"`
	// Minors are the minor versions of Kubernetes whose nodes get the files; none: all.
	Minors  []string       `json:"minors,omitempty"`
	Version string         `json:"version"`
	Source  string         `json:"source"` // origin of the files, for the manifest
	Files   []ExternalFile `json:"files"`

	how string // how the files were obtained, for the report
}

// ExternalFile is a file of an external component.
type ExternalFile struct {
	File   string `json:"file"` // current path, relative to the list
	SHA256 string `json:"sha256"`
}

// externalsByName maps the names of components to the external components, one for all nodes or several with different
// minor versions of Kubernetes.
type externalsByName map[string][]External

// overlaps reports whether two files of a component are for the same nodes.
func (e External) overlaps(other External) bool {
	return len(e.Minors) == 0 || len(other.Minors) == 0 ||
		slices.ContainsFunc(e.Minors, func(minor string) bool { return slices.Contains(other.Minors, minor) })
}

// missingMinors returns the minor versions of Kubernetes without a file of the component.
func (e externalsByName) missingMinors(component string, minors []string) []string {
	return slices.DeleteFunc(slices.Clone(minors), func(minor string) bool {
		return slices.ContainsFunc(e[component], func(x External) bool { return len(x.Minors) == 0 || slices.Contains(x.Minors, minor) })
	})
}

// readExternals reads the list of external components. Without a file, the list is empty. All files are checked
// against their digests.
func readExternals(file string, table Table) (externalsByName, error) {
	externals := externalsByName{}
	if file == "" {
		return externals, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the list of external components: %w", err)
	}
	var list []External
	if err := yaml.UnmarshalStrict(data, &list); err != nil {
		return nil, fmt.Errorf("read the list of external components %s: %w", file, err)
	}
	for _, e := range list {
		if err := e.checkFiles(filepath.Dir(file), table); err != nil {
			return nil, fmt.Errorf("external component %q in %s: %w", e.Component, file, err)
		}
		for _, minor := range e.Minors {
			if !slices.Contains(support.CurrentLine().KubernetesMinors(), minor) {
				return nil, fmt.Errorf("external component %q in %s: the operator does not serve Kubernetes %q", e.Component, file, minor)
			}
		}
		if slices.ContainsFunc(externals[e.Component], func(other External) bool { return other.overlaps(e) }) {
			return nil, fmt.Errorf("external component %q is in %s twice", e.Component, file)
		}
		e.how = "brought by whoever built the payload, who gave its sha256"
		externals[e.Component] = append(externals[e.Component], e)
	}
	return externals, nil
}

// refuseMissing returns an error for a missing external component before the long build starts. Without the
// component, no host can become a node.
func refuseMissing(components []Component, externals externalsByName, minors, allowed []string) error {
	for _, c := range components {
		if c.External == "" || slices.Contains(allowed, c.Name) {
			continue
		}
		if missing := externals.missingMinors(c.Name, minors); len(externals[c.Name]) > 0 && len(missing) > 0 {
			return fmt.Errorf("component %s has no file for Kubernetes %s: add one, or build without it with ALLOW_MISSING=%s", c.Name,
				strings.Join(missing, ", "), c.Name)
		}
		if len(externals[c.Name]) == 0 {
			return fmt.Errorf("component %s (%s) is not built from a Go module: give RELEASE=<release image of OpenShift>, "+
				"EXTERNAL=<list> or SOURCE=<sources>, see docs/payload.md, or go on without it with ALLOW_MISSING=%s", c.Name, c.External, c.Name)
		}
	}
	return nil
}

// checkFiles also makes the file names absolute.
func (e External) checkFiles(dir string, table Table) error {
	i := slices.IndexFunc(table.Components, func(c Component) bool { return c.Name == e.Component && c.External != "" })
	if i < 0 {
		return errors.New("the table has no external component of that name")
	}
	if e.Version == "" || e.Source == "" {
		return errors.New("version or source is not given")
	}
	var names []string
	for _, f := range e.Files {
		names = append(names, filepath.Base(f.File))
	}
	if want := table.Components[i].Files; !slices.Equal(slices.Sorted(slices.Values(names)),
		slices.Sorted(slices.Values(want))) {
		return fmt.Errorf("its files must have the names %q, not %q: hosts find them by their names", want, names)
	}
	for i, f := range e.Files {
		if !filepath.IsAbs(f.File) {
			f.File = filepath.Join(dir, f.File)
			e.Files[i] = f
		}
		sum, err := fileDigest(f.File)
		if err != nil {
			return err
		}
		if sum != f.SHA256 {
			return fmt.Errorf("%s has sha256 %s instead of the expected %q: it is another file, or it was changed", f.File, sum, f.SHA256)
		}
		if err := checkExecutable(f.File); err != nil {
			return err
		}
	}
	return nil
}

func fileDigest(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
