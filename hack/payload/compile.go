package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Build builds an executable. The same module, table and Go version give the same bytes on any machine and in any
// directory.
func (s Source) Build(ctx context.Context, e Executable, m Module, output string) error {
	arguments, err := buildArguments(e, m.Version)
	if err != nil {
		return err
	}
	output, err = filepath.Abs(output)
	if err != nil {
		return err
	}
	if _, err := s.goCommand(ctx, append(arguments, "-o", output, "--", e.Package)...); err != nil {
		return fmt.Errorf("build %s: %w", e.Output, err)
	}
	return nil
}

func buildArguments(e Executable, v Version) ([]string, error) {
	variables, err := e.linkVariables(v)
	if err != nil {
		return nil, err
	}
	flags := []string{"-s", "-w"} // no symbol table, no debugging information
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		flags = append(flags, "-X", name+"="+variables[name])
	}
	return []string{"build", "-trimpath", "-buildvcs=false", "-tags", strings.Join(e.Tags, ","), "-ldflags",
		strings.Join(flags, " ")}, nil
}
