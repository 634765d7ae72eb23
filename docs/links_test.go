package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// guidePaths returns all documents for users.
func guidePaths(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("*.md")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%v, %v", paths, err)
	}
	below, err := filepath.Glob("*/*.md")
	if err != nil || len(below) < 10 {
		t.Fatalf("%v, %v", below, err)
	}
	return append(append(paths, below...), "../README.md", "../CHANGELOG.md", "../AGENTS.md", "../CONTRIBUTING.md", "../HACKING.md", "../SECURITY.md", "../examples/README.md")
}

func readText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// headingAnchors returns the link targets of a document's headings.
func headingAnchors(t *testing.T, path string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(readText(t, path), -1) {
		plain := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		found[strings.ReplaceAll(plain, " ", "-")] = true
	}
	return found
}

func TestLinks_HaveTargets(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, guide := range guidePaths(t) {
		for _, match := range link.FindAllStringSubmatch(readText(t, guide), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(match[1], "#")
			target := guide
			if file != "" {
				target = filepath.Join(filepath.Dir(guide), filepath.FromSlash(file))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s: %v", guide, match[1], err)
				continue
			}
			if anchor != "" && !headingAnchors(t, target)[anchor] {
				t.Errorf("%s: %s has no heading for the link %s", guide, target, match[1])
			}
		}
	}
}

func TestExamples_NamedByGuidesExist(t *testing.T) {
	name := regexp.MustCompile(`examples/([a-z0-9-]+\.(?:yaml|xml))`)
	named := map[string]bool{}
	for _, guide := range guidePaths(t) {
		text := readText(t, guide)
		for _, match := range name.FindAllStringSubmatch(text, -1) {
			named[match[1]] = true
			if _, err := os.Stat(filepath.Join("..", "examples", match[1])); err != nil {
				t.Errorf("%s: %v", guide, err)
			}
		}
	}
	all, err := filepath.Glob("../examples/*.yaml")
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	listed := readText(t, "../examples/README.md")
	for _, path := range all {
		if base := filepath.Base(path); !named[base] && !strings.Contains(listed, base) &&
			!strings.Contains(listed, "-"+strings.TrimSuffix(base[strings.LastIndex(base, "-")+1:], ".yaml")) {
			t.Errorf("no guide names examples/%s", base)
		}
	}
}
