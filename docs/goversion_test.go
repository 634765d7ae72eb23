package docs_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// goVersion returns the highest Go version that the modules of a pattern require.
func goVersion(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no modules %s: %v", pattern, err)
	}
	var versions []string
	for _, file := range files {
		module, err := modfile.ParseLax(file, []byte(readText(t, file)), nil)
		if err != nil || module.Go == nil {
			t.Fatalf("%s: %v", file, err)
		}
		versions = append(versions, "v"+module.Go.Version)
	}
	return slices.MaxFunc(versions, semver.Compare)[1:]
}

// Pages about the payload have the exact version that its modules require. Other pages have the minor version.
func TestTheRequiredGoVersionIsDocumented(t *testing.T) {
	minor := semver.MajorMinor("v" + goVersion(t, "go.mod"))[1:]
	payload := goVersion(t, "payload/*/go.mod")
	for page, want := range map[string]string{
		"../README.md": minor, "../CONTRIBUTING.md": minor, "demo.md": minor,
		"payload.md": payload, "install.md": payload, "../HACKING.md": payload,
	} {
		found := regexp.MustCompile(`[Nn]eed(?:\s+only)?(?:[^.]|\.\d)*?\bGo (\d[\d.]*\d)`).FindStringSubmatch(readText(t, page))
		if found == nil || found[1] != want {
			t.Errorf("%s must require Go %s: %q", page, want, found)
		}
	}
}
