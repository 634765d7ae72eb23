// Package payload manages the executables installed on hosts. A manifest lists the executables, and a store contains
// each of them under the digest of its content. An archive transfers the files missing on a host as one compressed
// stream.
package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// SchemaVersion is the version of the manifest's JSON format.
const SchemaVersion = 1

// ComponentAgent is the name of the agent component, which has the single file wicd.exe.
const ComponentAgent = "wicd"

// Manifest lists the content of a payload.
type Manifest struct {
	Schema  int    `json:"schema"`
	Version string `json:"version"` // version of the operator that the payload was built for
	// WindowBytes is the window size of the archive's compression and the approximate memory needed for unpacking.
	// Zero means DefaultWindowBytes.
	WindowBytes int64       `json:"windowBytes,omitempty"`
	Components  []Component `json:"components"`
	// Absent are the components missing from the payload; see Payload.Missing.
	Absent []Absent `json:"absent,omitempty"`
	// Patches create files of this payload from files of earlier payloads.
	Patches []Patch `json:"patches,omitempty"`
	// Packs are sets of files sent to hosts together. Without packs, hosts receive the same files individually, which
	// takes more bytes.
	Packs []Pack `json:"packs,omitempty"`
}

// Pack is a set of files compressed together when the payload was built. It is sent to hosts as stored.
type Pack struct {
	Files  []string `json:"files"`  // sha256 of each file
	Size   int64    `json:"size"`   // of the pack, in bytes
	SHA256 string   `json:"sha256"` // of the pack
}

// Absent is a component that could not be added to the payload.
type Absent struct {
	Name string `json:"name"`
	// Minors is Component.Minors.
	Minors []string `json:"minors,omitempty"`
	// Reason is the cause and the action for the builder of the payload.
	Reason string `json:"reason"`
}

// Component is a set of files of one origin that are installed and replaced together.
type Component struct {
	Name    string `json:"name"`    // "kubelet"
	Version string `json:"version"` // "v1.36.3"
	Source  string `json:"source"`  // module@version of the build, or another origin
	// Required components must be complete, otherwise the payload does not load. Payload.Missing reports the faults
	// of optional components.
	Required bool `json:"required,omitempty"`
	// Platforms limits the component to hosts of these Infrastructure platform types (Azure, AWS, None, …); empty
	// means all.
	Platforms []string `json:"platforms,omitempty"`
	// Minors limits the component to hosts of clusters with these minor versions of Kubernetes ("1.36"); empty means
	// all. Components with the same name have different minor versions.
	Minors []string `json:"minors,omitempty"`
	// StandIn is true for files that only the simulated hosts of the lab can run.
	StandIn bool   `json:"standIn,omitempty"`
	Files   []File `json:"files"`
}

// File is one file of a component.
type File struct {
	Path   string `json:"path"` // relative to the component's directory on the host, with backslashes
	Size   int64  `json:"size"` // in bytes
	SHA256 string `json:"sha256"`
}

// Target identifies the hosts of a cluster.
type Target struct {
	// Platform is the Infrastructure platform type, and Kubernetes the minor version of Kubernetes ("1.36").
	Platform, Kubernetes string
}

// IsFor reports whether the hosts of a cluster receive the component.
func (c Component) IsFor(target Target) bool {
	return (len(c.Platforms) == 0 || slices.Contains(c.Platforms, target.Platform)) && c.IsForKubernetes(target.Kubernetes)
}

// IsForKubernetes reports whether hosts with a minor version of Kubernetes receive the component.
func (c Component) IsForKubernetes(minor string) bool { return isForMinor(c.Minors, minor) }

func isForMinor(minors []string, minor string) bool {
	return len(minors) == 0 || slices.Contains(minors, minor)
}

// String returns the name of the component, with its minor versions if there are several components of that name.
func (c Component) String() string { return describeComponent(c.Name, c.Minors) }

func describeComponent(name string, minors []string) string {
	if len(minors) == 0 {
		return name
	}
	return name + " for Kubernetes " + strings.Join(minors, ", ")
}

// Component returns the component with the given name. Of the components for different minor versions of Kubernetes,
// it returns the first.
func (m Manifest) Component(name string) (Component, bool) {
	i := slices.IndexFunc(m.Components, func(c Component) bool { return c.Name == name })
	if i < 0 {
		return Component{}, false
	}
	return m.Components[i], true
}

// isVersionOf reports whether a component for all hosts has one of the minor versions of Kubernetes.
func isVersionOf(c Component, minors []string) bool {
	return len(c.Minors) == 0 && slices.ContainsFunc(minors, func(m string) bool { return strings.HasPrefix(c.Version, "v"+m+".") })
}

// counterpart returns the component with the name and minor versions of a component of another payload.
func (m Manifest) counterpart(of Component) (Component, bool) {
	i := slices.IndexFunc(m.Components, func(c Component) bool {
		return c.Name == of.Name && (slices.Equal(c.Minors, of.Minors) || isVersionOf(c, of.Minors) || isVersionOf(of, c.Minors))
	})
	if i < 0 {
		return Component{}, false
	}
	return m.Components[i], true
}

// distinctFiles returns each distinct file of the manifest once, in manifest order.
func (m Manifest) distinctFiles() []File {
	var files []File
	seen := map[string]bool{}
	for _, c := range m.Components {
		for _, f := range c.Files {
			if !seen[f.SHA256] {
				seen[f.SHA256] = true
				files = append(files, f)
			}
		}
	}
	return files
}

// sendableFiles returns the possible content of an archive: files followed by patches, in manifest order.
func (m Manifest) sendableFiles() []File {
	files := m.distinctFiles()
	for _, patch := range m.Patches {
		files = append(files, patch.asFile())
	}
	return files
}

// ParseManifest parses and validates the JSON form of a manifest.
func ParseManifest(data []byte) (Manifest, error) {
	var m Manifest
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&m); err != nil {
		return Manifest{}, fmt.Errorf("read the payload manifest: %w", err)
	}
	if err := m.Validate(); err != nil {
		return Manifest{}, fmt.Errorf("the payload manifest is not valid: %w", err)
	}
	return m, nil
}

var (
	componentName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
	digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)
	minorPattern  = regexp.MustCompile(`^[1-9][0-9]*\.[0-9]+$`)
)

// Validate returns all faults of the manifest.
func (m Manifest) Validate() error {
	var faults []error
	if m.Schema != SchemaVersion {
		return fmt.Errorf("the schema version is %d, but this program supports %d: use the payload of the same release",
			m.Schema, SchemaVersion)
	}
	if m.Version == "" {
		faults = append(faults, errors.New("the version is missing"))
	}
	if m.WindowBytes != 0 && (m.WindowBytes < minWindowBytes || m.WindowBytes > maxWindowBytes ||
		m.WindowBytes&(m.WindowBytes-1) != 0) {
		faults = append(faults, fmt.Errorf("windowBytes %d is not a power of two from %d to %d", m.WindowBytes,
			minWindowBytes, maxWindowBytes))
	}
	names, sizes := componentNames{}, map[string]int64{}
	for _, c := range m.Components {
		if !names.add(c.Name, c.Minors) {
			faults = append(faults, fmt.Errorf("component %q is listed twice", c.String()))
		}
		faults = append(faults, c.validate(sizes)...)
	}
	for _, absent := range m.Absent {
		if !names.add(absent.Name, absent.Minors) || !componentName.MatchString(absent.Name) || absent.Reason == "" {
			faults = append(faults, fmt.Errorf("the absent component %q is present, listed twice, has no reason or no valid name",
				describeComponent(absent.Name, absent.Minors)))
		}
	}
	return errors.Join(slices.Concat(faults, m.validatePatches(sizes), m.validatePacks(sizes))...)
}

// componentNames maps the names of components to the minor versions of Kubernetes that have the component.
type componentNames map[string][]string

// add adds a component, and reports whether no other component of the name is for the same hosts.
func (n componentNames) add(name string, minors []string) bool {
	known, found := n[name]
	isNew := !found || len(known) > 0 && len(minors) > 0 && !slices.ContainsFunc(minors, func(m string) bool { return slices.Contains(known, m) })
	n[name] = append(known, minors...)
	return isNew
}

func (m Manifest) validatePacks(sizes map[string]int64) []error {
	var faults []error
	for _, pack := range m.Packs {
		if !digestPattern.MatchString(pack.SHA256) || pack.Size <= 0 || len(pack.Files) == 0 {
			faults = append(faults, fmt.Errorf("the pack with sha256 %q has no valid digest, no size or no files", pack.SHA256))
		}
		for _, sum := range pack.Files {
			if _, known := sizes[sum]; !known {
				faults = append(faults, fmt.Errorf("the pack with sha256 %q has file %q, which is not in the payload", pack.SHA256, sum))
			}
		}
	}
	return faults
}

func (m Manifest) validatePatches(sizes map[string]int64) []error {
	var faults []error
	seen := map[Patch]bool{}
	for _, p := range m.Patches {
		fault := func(format string, args ...any) {
			faults = append(faults, fmt.Errorf("patch from %q to %q: %w", p.From, p.To, fmt.Errorf(format, args...)))
		}
		for _, sum := range []string{p.From, p.To, p.SHA256} {
			if !digestPattern.MatchString(sum) {
				fault("%q is not a digest of 64 lower-case hex digits", sum)
			}
		}
		if _, known := sizes[p.To]; !known {
			fault("the target is not a file of the payload")
		}
		if p.From == p.To {
			fault("source and target are equal")
		}
		if p.Size <= int64(patchHeader) || p.Size > maxFileBytes {
			fault("size %d is not between %d and %d", p.Size, patchHeader+1, int64(maxFileBytes))
		}
		ends := Patch{From: p.From, To: p.To}
		if seen[ends] {
			fault("the patch is listed twice")
		}
		seen[ends] = true
	}
	return faults
}

func (c Component) validate(sizes map[string]int64) []error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("component %q: %w", c.Name, fmt.Errorf(format, args...)))
	}
	if !componentName.MatchString(c.Name) {
		fault("the name must consist of lower-case letters, digits, - and _")
	}
	if c.Version == "" || c.Source == "" {
		fault("version or source is missing")
	}
	if slices.Contains(c.Platforms, "") {
		fault("a platform is empty")
	}
	if i := slices.IndexFunc(c.Minors, func(m string) bool { return !minorPattern.MatchString(m) }); i >= 0 {
		fault("%q is not a minor version of Kubernetes", c.Minors[i])
	}
	if len(c.Files) == 0 {
		fault("the component has no files")
	}
	paths := map[string]bool{}
	for _, f := range c.Files {
		if err := validatePath(f.Path); err != nil {
			fault("%w", err)
		}
		if !digestPattern.MatchString(f.SHA256) {
			fault("file %q: sha256 %q is not a digest of 64 lower-case hex digits", f.Path, f.SHA256)
		}
		if f.Size < 0 || f.Size > maxFileBytes {
			fault("file %q: size %d is not between 0 and %d", f.Path, f.Size, int64(maxFileBytes))
		}
		if other, known := sizes[f.SHA256]; known && other != f.Size {
			fault("file %q: sha256 %s is listed with two sizes, %d and %d", f.Path, f.SHA256, other, f.Size)
		}
		sizes[f.SHA256] = f.Size
		key := strings.ToLower(f.Path)
		if paths[key] {
			fault("file %q is listed twice", f.Path)
		}
		paths[key] = true
	}
	if c.Name == ComponentAgent && (len(c.Files) != 1 || c.Files[0].Path != "wicd.exe" || len(c.Minors) > 0) {
		fault("the component must contain only wicd.exe, for all hosts")
	}
	return faults
}
