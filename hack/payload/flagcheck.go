package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// compareFlags checks that the programs of external components support the flags that nodes use. With another
// release that does not, no node would become Ready. The method of the check is added to each component.
func compareFlags(ctx context.Context, b Builder, components []Component, externals externalsByName) error {
	for _, c := range components {
		if len(c.Flags) == 0 {
			continue
		}
		for i, e := range externals[c.Name] {
			for _, f := range e.Files {
				how, err := checkProgramFlags(ctx, b, f.File, c.Flags)
				if err != nil {
					return fmt.Errorf("component %s: %s of version %s %w: this version of the operator needs another one", c.Name,
						f.File, e.Version, err)
				}
				externals[c.Name][i].how += "; " + how
			}
		}
	}
	return nil
}

// checkProgramFlags checks the help of a program, if programs can be run. Otherwise it searches the executable for the
// names, because a program without the name does not have the flag.
func checkProgramFlags(ctx context.Context, b Builder, file string, flags []string) (how string, err error) {
	reason := b.NoRunnerReason
	if b.Runner != nil {
		help, err := b.Runner.RunProgram(ctx, file, []string{"--help"})
		if strings.Contains(help, "--help") { // an answer, with any exit status
			return "its help under Wine lists all flags that nodes give it", checkFlags(flags, func(name string) bool {
				return regexp.MustCompile(`(^|[\s,])-{1,2}` + regexp.QuoteMeta(name) + `(\s|,|=|$)`).MatchString(help)
			})
		}
		reason = fmt.Errorf("it gave no help under Wine (%w): %s", err, lastLine(help))
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	how = fmt.Sprintf("the names of all flags that nodes give it are in the executable; it was not asked for its help: %v", reason)
	return how, checkFlags(flags, func(name string) bool { return bytes.Contains(content, []byte(name)) })
}

func checkFlags(flags []string, has func(name string) bool) error {
	var missing []string
	for _, name := range flags {
		if !has(name) {
			missing = append(missing, "--"+name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("does not have the flags %s, which nodes give it", strings.Join(missing, " "))
	}
	return nil
}
