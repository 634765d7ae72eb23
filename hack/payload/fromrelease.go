package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/windows-machine-config/wmco/hack/payload/release"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// fromRelease adds the external components of OpenShift releases. With several releases, the nodes of a minor version of
// Kubernetes get the files of the release with that version, or with the next newer one.
func fromRelease(ctx context.Context, o options, table Table, externals externalsByName, log io.Writer) error {
	images := strings.Fields(o.release)
	if len(images) == 0 {
		if o.mirrors != "" {
			return errors.New("MIRRORS= is for the images of a release: give RELEASE= too")
		}
		return nil
	}
	releases, err := openReleases(ctx, images, o.mirrors)
	if err != nil {
		return err
	}
	for _, c := range table.Components {
		if c.Release == nil {
			continue
		}
		if len(externals[c.Name]) > 0 {
			return fmt.Errorf("component %s is both in EXTERNAL=%s and in RELEASE=%s: give one of them", c.Name, o.external,
				o.release)
		}
		for _, from := range releases {
			fmt.Fprintf(log, "%s from release %s\n", c.Name, from.Version)
			external, err := writeComponentFiles(ctx, from.Release, c, filepath.Join(append([]string{o.bin, c.Name}, from.minors...)...))
			if err != nil {
				return err
			}
			external.Minors = from.minors
			externals[c.Name] = append(externals[c.Name], external)
		}
	}
	return nil
}

// minorRelease is a release with the minor versions of Kubernetes whose nodes get its files; none: all.
type minorRelease struct {
	*release.Release
	minors []string
}

// openReleases opens the releases, the oldest first.
func openReleases(ctx context.Context, images []string, mirrors string) ([]minorRelease, error) {
	line := support.CurrentLine()
	byMinor := map[string]*release.Release{}
	for _, image := range images {
		from, err := release.Open(ctx, image, mirrors)
		if err != nil {
			return nil, err
		}
		if len(images) == 1 {
			return []minorRelease{{Release: from}}, nil
		}
		minor := line.KubernetesFor(from.Version)
		switch other := byMinor[minor]; {
		case minor == "":
			return nil, fmt.Errorf("RELEASE=%s is OpenShift %s, which the operator does not serve", image, from.Version)
		case other != nil:
			return nil, fmt.Errorf("the releases %s and %s both have Kubernetes %s: give one of them", other.Version, from.Version, minor)
		}
		byMinor[minor] = from
	}
	return assignMinors(line, byMinor), nil
}

// assignMinors assigns each minor version of Kubernetes of a line to the release with that version, or to the next newer
// release; the newest release also gets all later versions.
func assignMinors(line support.ReleaseLine, byMinor map[string]*release.Release) []minorRelease {
	var list []minorRelease
	var pending []string
	for _, minor := range line.KubernetesMinors() {
		if pending = append(pending, minor); byMinor[minor] != nil {
			list, pending = append(list, minorRelease{byMinor[minor], pending}), nil
		}
	}
	newest := &list[len(list)-1]
	newest.minors = append(newest.minors, pending...)
	return list
}

// writeComponentFiles writes the files of a component into a directory. The files get the final names after all checks.
func writeComponentFiles(ctx context.Context, from *release.Release, c Component, dir string) (External, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return External{}, err
	}
	unchecked, err := os.MkdirTemp(dir, ".unchecked-")
	if err != nil {
		return External{}, err
	}
	defer os.RemoveAll(unchecked)
	external := External{Component: c.Name, Version: "v" + from.Version}
	for _, name := range c.Files {
		file := filepath.Join(unchecked, name)
		origin, err := from.File(ctx, c.Release.Image, path.Join(c.Release.Directory, name), file)
		if err == nil {
			err = checkProgram(file, name, c.Release.Program)
		}
		if err != nil {
			return External{}, fmt.Errorf("%w; a file from elsewhere can be given with EXTERNAL=<list>, see docs/payload.md", err)
		}
		sum, err := fileDigest(file)
		if err != nil {
			return External{}, err
		}
		external.Source, external.how = origin.String(), "taken from the release's image "+origin.Image+", by its digest"
		external.Files = append(external.Files, ExternalFile{File: filepath.Join(dir, name), SHA256: sum})
	}
	for _, name := range c.Files {
		if err := os.Rename(filepath.Join(unchecked, name), filepath.Join(dir, name)); err != nil {
			return External{}, err
		}
	}
	return external, nil
}

// checkProgram checks that a file is a program for Windows nodes, built from the expected package. The sum of its
// module cannot be compared, because a release is built from a source tree.
func checkProgram(file, name, program string) error {
	if err := checkExecutable(file); err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%s is not a Go program, but %s is: %w", name, program, err)
	}
	if path.Base(info.Path) != program || buildSetting(info, "GOOS") != "windows" || buildSetting(info, "GOARCH") != "amd64" {
		return fmt.Errorf("%s is built from %s for %s/%s instead of from %s for windows/amd64", name, info.Path,
			buildSetting(info, "GOOS"), buildSetting(info, "GOARCH"), program)
	}
	return nil
}
