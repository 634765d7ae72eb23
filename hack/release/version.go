package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/blang/semver/v4"
)

// checkVersion requires a non-empty entry of the changelog for a version.
func checkVersion(version, changelog string) error {
	if _, err := semver.Parse(version); err != nil {
		return fmt.Errorf("VERSION=%s is no version such as 12.1.0: %w", version, err)
	}
	data, err := os.ReadFile(changelog)
	if err != nil {
		return err
	}
	for section := range strings.SplitSeq("\n"+string(data), "\n## ") {
		heading, text, _ := strings.Cut(section, "\n")
		if fields := strings.Fields(heading); len(fields) == 0 || fields[0] != version {
			continue
		}
		if !strings.Contains(text, "\n- ") {
			return fmt.Errorf("the entry for %s in %s says nothing: list what changes for administrators", version, changelog)
		}
		return nil
	}
	return fmt.Errorf("%s has no entry for %s: give the part Unreleased the heading `## %s`", changelog, version, version)
}
