package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pathInCode matches a path of this repository in a document for developers: a directory, a file, or several with a
// star. Some may be short.
var pathInCode = regexp.MustCompile("`((?:internal|instance|agent|policy|source|host|cmd|api|lab|test|hack|deploy|examples|payload|docs)/[^` <>…]*)`")

var short = map[string]string{"instance": "internal/controller/instance", "agent": "internal/agent", "policy": "internal/policy",
	"source": "internal/controller/source", "host": "internal/host"}

func TestPathsInDocumentsForDevelopersAreThere(t *testing.T) {
	for _, document := range []string{"architecture.md", "dev/recipes.md", "dev/testing.md", "../CONTRIBUTING.md", "../HACKING.md"} {
		found := pathInCode.FindAllStringSubmatch(readText(t, document), -1)
		if len(found) == 0 {
			t.Errorf("%s names no path", document)
		}
		for _, match := range found {
			path := match[1]
			first, rest, _ := strings.Cut(path, "/")
			if long, ok := short[first]; ok {
				path = long + "/" + rest
			}
			if files, err := filepath.Glob("../" + path); err != nil || len(files) == 0 {
				t.Errorf("%s names %s, which is not there", document, match[1])
			}
		}
	}
}
