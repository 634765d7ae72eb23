package image

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every make command of the guides must name an existing target and existing variables of the Makefile.
func TestGuide_MakeCommandsAreTargets(t *testing.T) {
	for guide, least := range map[string]int{"docs/install.md": 6, "docs/releasing.md": 4} {
		t.Run(guide, func(t *testing.T) { checkTargets(t, guide, least) })
	}
}

// readGuide returns a document with each command on one line.
func readGuide(t *testing.T, name string) string {
	t.Helper()
	guide, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(` \\\n +`).ReplaceAllString(string(guide), " ")
}

func checkTargets(t *testing.T, name string, least int) {
	guide := readGuide(t, name)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string]bool{}
	pattern := regexp.MustCompile("(?m)(?:^    |`)(make( [a-zA-Z0-9_=.@/:-]+)+)(?:$|`)")
	for _, found := range pattern.FindAllStringSubmatch(guide, -1) {
		commands[found[1]] = true
	}
	if len(commands) < least {
		t.Fatalf("the guide has only the commands %v", commands)
	}
	for line := range commands {
		words := strings.Fields(line)
		if output, err := runCommand(t.Context(), nil, "make", append([]string{"-n"}, words[1:]...)...); err != nil {
			t.Errorf("%s: %v: %s", line, err, output)
		}
		for _, word := range words[1:] {
			if name, _, is := strings.Cut(word, "="); is && !regexp.MustCompile(`(?m)^`+name+`\s*:=`).Match(makefile) {
				t.Errorf("%s: the Makefile has no variable %s", line, name)
			}
		}
	}
}

// Every command of the installation guide is run or read by a test: make commands above, oc commands in
// test/guides. Commands that need a registry use programs that the lab does not have. For these, a shell parses the
// lines, and the named files must exist.
func TestGuide_EachInstallCommandIsChecked(t *testing.T) {
	guide := readGuide(t, "docs/install.md")
	counted := map[string]int{}
	for _, found := range regexp.MustCompile(`(?m)^ {4,}([a-z]+ [^\n]*)$`).FindAllStringSubmatch(guide, -1) {
		program, _, _ := strings.Cut(found[1], " ")
		switch program {
		case "make", "oc":
		case "podman", "opm", "skopeo":
			if output, err := runCommand(t.Context(), nil, "bash", "-n", "-c", found[1]); err != nil {
				t.Errorf("no shell reads %s: %v: %s", found[1], err, output)
			}
			for _, path := range regexp.MustCompile(`build/(olm/bundle/?\S*|olm/catalog)(?: |$)`).FindAllStringSubmatch(found[1], -1) {
				if _, err := os.Stat(filepath.Join(root, "deploy", path[1])); err != nil {
					t.Errorf("%s: make bundle does not write it: %v", found[1], err)
				}
			}
		default:
			t.Errorf("no test reads commands of %s: %s", program, found[1])
		}
		counted[program]++
	}
	for _, program := range []string{"make", "oc", "podman", "opm", "skopeo"} {
		if counted[program] == 0 {
			t.Errorf("there is no command of %s: %v", program, counted)
		}
	}
}
