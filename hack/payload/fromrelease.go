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

	"github.com/windows-machine-config/wmco/hack/payload/release"
)

// fromRelease adds the external components of an OpenShift release.
func fromRelease(ctx context.Context, o options, table Table, externals map[string]External, log io.Writer) error {
	if o.release == "" {
		if o.mirrors != "" {
			return errors.New("MIRRORS= is for the images of a release: give RELEASE= too")
		}
		return nil
	}
	from, err := release.Open(ctx, o.release, o.mirrors)
	if err != nil {
		return err
	}
	for _, c := range table.Components {
		if c.Release == nil {
			continue
		}
		if _, twice := externals[c.Name]; twice {
			return fmt.Errorf("component %s is both in EXTERNAL=%s and in RELEASE=%s: give one of them", c.Name, o.external,
				o.release)
		}
		fmt.Fprintf(log, "%s from release %s\n", c.Name, from.Version)
		if externals[c.Name], err = writeComponentFiles(ctx, from, c, filepath.Join(o.bin, c.Name)); err != nil {
			return err
		}
	}
	return nil
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
