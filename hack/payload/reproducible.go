package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// compareBuilds builds executables in two directories and fails if a byte differs. The builds use copies of the
// modules at paths of different length. The first uses Go's usual cache, the second an empty cache, so that
// everything is recompiled.
func compareBuilds(ctx context.Context, o options, components []Component, log io.Writer) error {
	if err := os.RemoveAll(o.scratch); err != nil {
		return err
	}
	scratch, err := filepath.Abs(o.scratch)
	if err != nil {
		return err
	}
	builders := []Builder{
		{Modules: filepath.Join(scratch, "a", "modules"), Bin: filepath.Join(scratch, "a", "bin")},
		{Modules: filepath.Join(scratch, "another", "place", "modules"),
			Bin:   filepath.Join(scratch, "another", "place", "bin"),
			Cache: cmp.Or(o.secondCache, filepath.Join(scratch, "cache"))},
	}
	var faults []error
	for _, c := range components {
		var lists [][]Built
		for _, b := range builders {
			b.Log, b.NoRunnerReason = log, errors.New("this build is only compared")
			if err := copyModules(o.modules, b.Modules, c); err != nil {
				return err
			}
			list, err := b.Component(ctx, c)
			if err != nil {
				return err
			}
			lists = append(lists, list)
		}
		for i, first := range lists[0] {
			equal, err := isSameContent(first.File, lists[1][i].File)
			switch {
			case err != nil:
				return err
			case !equal:
				faults = append(faults, fmt.Errorf("%s differs: compare %s and %s", first.Output, first.File, lists[1][i].File))
			default:
				fmt.Fprintf(log, "%s is the same twice: sha256 %s\n", first.Output, first.SHA256)
			}
		}
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("the build is not reproducible: %w", err)
	}
	return os.RemoveAll(scratch)
}

// copyModules copies go.mod and go.sum, the only files of a payload module.
func copyModules(from, to string, c Component) error {
	for _, e := range c.Executables {
		if err := os.MkdirAll(filepath.Join(to, e.Module), 0o755); err != nil {
			return err
		}
		for _, name := range []string{"go.mod", "go.sum"} {
			data, err := os.ReadFile(filepath.Join(from, e.Module, name))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(to, e.Module, name), data, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

func isSameContent(a, b string) (bool, error) {
	contentA, err := os.ReadFile(a)
	if err != nil {
		return false, err
	}
	contentB, err := os.ReadFile(b)
	return bytes.Equal(contentA, contentB), err
}
