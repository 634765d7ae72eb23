package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"unicode/utf8"
)

// before is the last commit that the rule for subjects does not concern.
const before = "783d5142"

// longestSubject is the longest subject of a commit, in characters: git and most pages show no more.
const longestSubject = 72

// area begins a subject: one or more folders, rooms or documents.
var area = regexp.MustCompile(`^[a-z0-9][\w./-]*(, [a-z0-9][\w./-]*)*: \S`)

// checkSubjects returns what is wrong with the subjects of the commits since before, merges apart. A tree without
// that history has none to look at.
func checkSubjects(ctx context.Context) []string {
	log := exec.CommandContext(ctx, "git", "log", "--no-merges", "--format=%h %s", before+"..HEAD")
	output, err := log.Output()
	if err != nil {
		return nil // an archive without git, or a clone without that commit
	}
	var faults []string
	for line := range strings.Lines(string(bytes.TrimSpace(output))) {
		commit, subject, _ := strings.Cut(strings.TrimSpace(line), " ")
		if fault := faultOf(subject); fault != "" {
			faults = append(faults, fmt.Sprintf("commit %s: %q: %s", commit, subject, fault))
		}
	}
	return faults
}

// faultOf returns what is wrong with the subject of a commit, or "".
func faultOf(subject string) string {
	switch {
	case utf8.RuneCountInString(subject) > longestSubject:
		return fmt.Sprintf("the subject has more than %d characters", longestSubject)
	case !area.MatchString(subject) && !strings.HasPrefix(subject, "Revert "):
		return "the subject does not begin with its area, as in \"remote: send the agent only when its digest differs\""
	}
	return ""
}
