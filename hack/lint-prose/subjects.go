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

// lastUncheckedCommit is the last commit before the rule for subjects applies.
const lastUncheckedCommit = "783d5142"

// maxSubjectLength is the maximum length of a commit subject in characters: git and most pages show no more.
const maxSubjectLength = 72

// area matches the beginning of a subject: one or more directories, packages or documents.
var area = regexp.MustCompile(`^[a-z0-9][\w./-]*(, [a-z0-9][\w./-]*)*: \S`)

// checkSubjects returns the faults in the subjects of the commits since lastUncheckedCommit, except merges. A tree
// without that history has no faults.
func checkSubjects(ctx context.Context) []string {
	log := exec.CommandContext(ctx, "git", "log", "--no-merges", "--format=%h %s", lastUncheckedCommit+"..HEAD")
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

// faultOf returns the fault in the subject of a commit, or "".
func faultOf(subject string) string {
	switch {
	case utf8.RuneCountInString(subject) > maxSubjectLength:
		return fmt.Sprintf("the subject has more than %d characters", maxSubjectLength)
	case !area.MatchString(subject) && !strings.HasPrefix(subject, "Revert "):
		return "the subject does not begin with its area, as in \"remote: send the agent only when its digest differs\""
	}
	return ""
}
