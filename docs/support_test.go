package docs_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// The guide contains each limit of the earlier guides, with the state from the table of requirements.
func TestSupport_EachLimitListed(t *testing.T) {
	states := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (L-\d+) \| [^|]+ \| ([^|]+) \|`).FindAllStringSubmatch(readText(t,
		"requirements.md"), -1) {
		states[row[1]] = row[2]
	}
	guide := tableRows(t, readSection(t, "support.md", "## Limits"), "| | limit of legacy operators | now |")
	for i, row := range guide {
		if want := fmt.Sprintf("L-%02d", i+1); row[0] != want {
			t.Fatalf("docs/support.md has %s in the place of %s", row[0], want)
		}
		documented := regexp.MustCompile(`^(kept|lifted in part|lifted)\b`).FindString(row[2])
		if state := states[row[0]]; state == "" || state != documented {
			t.Errorf("%s: docs/support.md says %q, docs/requirements.md %q", row[0], row[2], state)
		}
	}
	if len(guide) != 28 {
		t.Errorf("docs/support.md has %d limits, want 28", len(guide))
	}
}

//
func TestSupport_FirstReleaseOfPlatformsDocumented(t *testing.T) {
	_, platforms, _ := strings.Cut(readSection(t, "support.md", "### In words"), "\nPlatforms were added")
	words := strings.Join(strings.Fields(platforms), " ")
	for _, part := range []string{
		"AWS and Azure 1.0 (OpenShift 4.6)", "vSphere 2.0 (4.7)", "your own hosts 3.1 (4.8)", "Google Cloud 7.0 (4.12)",
		"community's package named vSphere from OpenShift 4.6 on", "installer-provisioned infrastructure all of these are generally available (GA)",
		"user-provisioned infrastructure they were a technology preview at first",
		"supported with a subscription to Red Hat OpenShift support for Windows Containers", "needs no subscription",
	} {
		if !strings.Contains(words, part) {
			t.Errorf("docs/support.md does not say: %s", part)
		}
	}
}
