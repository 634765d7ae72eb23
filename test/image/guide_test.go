package image

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every command of the guides is a target of the Makefile with variables that it has.
func TestTheGuidesCommandsAreTargetsOfTheMakefile(t *testing.T) {
	for guide, least := range map[string]int{"docs/install.md": 6, "docs/releasing.md": 4} {
		t.Run(guide, func(t *testing.T) { hasTargets(t, guide, least) })
	}
}

func hasTargets(t *testing.T, name string, least int) {
	guide, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string]bool{}
	pattern := regexp.MustCompile("(?m)(?:^    |`)(make( [a-zA-Z0-9_=.@/:-]+)+)(?:$|`)")
	for _, found := range pattern.FindAllStringSubmatch(string(guide), -1) {
		commands[found[1]] = true
	}
	if len(commands) < least {
		t.Fatalf("the guide has only the commands %v", commands)
	}
	for line := range commands {
		words := strings.Fields(line)
		if printed, err := command(t.Context(), nil, "make", append([]string{"-n"}, words[1:]...)...); err != nil {
			t.Errorf("%s: %v: %s", line, err, printed)
		}
		for _, word := range words[1:] {
			if name, _, is := strings.Cut(word, "="); is && !regexp.MustCompile(`(?m)^`+name+`\s*:=`).Match(makefile) {
				t.Errorf("%s: the Makefile has no variable %s", line, name)
			}
		}
	}
}
