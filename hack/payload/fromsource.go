package main

import (
	"context"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/sumdb/dirhash"

	"github.com/windows-machine-config/wmco/hack/payload/sourcetree"
)

// fromSource adds the external components that are built from a source tree, which is a checkout or an archive.
func fromSource(ctx context.Context, o options, table Table, externals externalsByName, log io.Writer) error {
	if o.source == "" {
		if o.sourceSum != "" {
			return errors.New("SOURCE_SUM= is the sum of a source tree: give SOURCE= too")
		}
		return nil
	}
	for _, c := range table.Components {
		if c.InSource == nil {
			continue
		}
		if len(externals[c.Name]) > 0 {
			return fmt.Errorf("component %s is both in SOURCE=%s and in EXTERNAL= or RELEASE=: give one of them", c.Name, o.source)
		}
		fmt.Fprintf(log, "%s from source\n", c.Name)
		built, err := buildSource(ctx, o, c)
		if err != nil {
			return fmt.Errorf("component %s from SOURCE=%s: %w", c.Name, o.source, err)
		}
		externals[c.Name] = []External{built}
	}
	return nil
}

// buildSource builds the only file of a component. The file gets its final name after the check.
func buildSource(ctx context.Context, o options, c Component) (External, error) {
	dir := filepath.Join(o.bin, c.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return External{}, err
	}
	scratch, err := os.MkdirTemp(dir, ".source-")
	if err != nil {
		return External{}, err
	}
	defer os.RemoveAll(scratch)
	tree := filepath.Join(scratch, "tree")
	if err := sourcetree.Copy(o.source, c.InSource.Directory, tree); err != nil {
		return External{}, err
	}
	sum, err := checkPinnedSum(tree, o.sourceSum)
	if err != nil {
		return External{}, err
	}
	unchecked := filepath.Join(scratch, c.Files[0])
	module, err := compileSource(ctx, tree, c.InSource.Package, unchecked)
	if err != nil {
		return External{}, err
	}
	version, err := checkSource(unchecked, module, c)
	if err != nil {
		return External{}, err
	}
	digest, err := fileDigest(unchecked)
	if err != nil {
		return External{}, err
	}
	file := filepath.Join(dir, c.Files[0])
	return External{Component: c.Name, Version: versionOfSum(sum), Source: module + ", source tree " + sum,
		Files: []ExternalFile{{File: file, SHA256: digest}},
		how:   "built with " + version + " from the source tree with the sum " + sum}, os.Rename(unchecked, file)
}

// checkPinnedSum returns the sum of a source tree, computed like the sums of modules in Go's checksum database. It
// returns an error unless the sum equals want.
func checkPinnedSum(tree, want string) (string, error) {
	sum, err := dirhash.HashDir(tree, "source", dirhash.Hash1)
	switch {
	case err != nil:
		return "", err
	case want == "":
		return "", fmt.Errorf("its sum must be pinned: it is %s now, and if this is the source that you mean, give SOURCE_SUM=%s", sum, sum)
	case sum != want:
		return "", fmt.Errorf("it has the sum %s instead of the expected SOURCE_SUM=%s: it is another source, or it was changed", sum, want)
	}
	return sum, nil
}

// versionOfSum returns a version that no release has, because a source tree does not contain its version.
func versionOfSum(sum string) string {
	digest, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:"))
	if err != nil {
		return "v0.0.0-" + sum
	}
	return "v0.0.0-" + hex.EncodeToString(digest)[:12]
}

// compileSource builds a program of the module in a source tree, with the dependencies that the tree includes or
// pins. It returns the module's path.
func compileSource(ctx context.Context, tree, pkg, output string) (module string, err error) {
	data, err := os.ReadFile(filepath.Join(tree, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("it is no Go module: %w", err)
	}
	if module = modfile.ModulePath(data); module == "" {
		return "", errors.New("its go.mod names no module")
	}
	dependencies := "-mod=readonly"
	if _, err := os.Stat(filepath.Join(tree, "vendor", "modules.txt")); err == nil {
		dependencies = "-mod=vendor"
	}
	if output, err = filepath.Abs(output); err != nil {
		return "", err
	}
	_, err = (Source{Directory: tree}).goCommand(ctx, "build", dependencies, "-trimpath", "-buildvcs=false", "-ldflags",
		"-s -w", "-o", output, "--", "./"+pkg)
	return module, err
}

// checkSource checks a program like all other programs, except for the sums of modules. The sum of the tree covers
// the modules in the tree, and go compares all other modules with the tree's go.sum. The version of Go is returned.
func checkSource(file, module string, c Component) (string, error) {
	if err := checkProgram(file, c.Files[0], path.Base(c.InSource.Package)); err != nil {
		return "", err
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return "", err
	}
	if want := path.Join(module, c.InSource.Package); info.Path != want {
		return "", fmt.Errorf("%s is built from %s instead of from %s", c.Files[0], info.Path, want)
	}
	for name, want := range map[string]string{"CGO_ENABLED": "0", "-trimpath": "true"} {
		if got := buildSetting(info, name); got != want {
			return "", fmt.Errorf("%s is built with %s=%s instead of %s", c.Files[0], name, got, want)
		}
	}
	return info.GoVersion, nil
}
