package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var documentLink = regexp.MustCompile(`\]\(((?:\.\./)?[A-Za-z0-9/-]+\.md)\)`)

//
func TestIndex_ListsDocumentsInOrder(t *testing.T) {
	var guides []string
	for item := range strings.Lines(readSection(t, "README.md", "## Guides")) {
		if regexp.MustCompile(`^\d\. `).MatchString(item) {
			guides = append(guides, documentLink.FindStringSubmatch(item)[1])
		}
	}
	if want := []string{"install.md", "machinesets.md", "byoh.md", "workloads.md", "settings.md", "upgrades.md", "monitoring.md",
		"troubleshooting.md", "uninstall.md"}; !slices.Equal(guides, want) {
		t.Errorf("the guides are %v, want %v", guides, want)
	}
	listed := map[string]int{}
	for _, heading := range []string{"## Guides", "## Reference", "## For developers"} {
		for _, link := range documentLink.FindAllStringSubmatch(readSection(t, "README.md", heading), -1) {
			listed[link[1]]++
		}
	}
	for _, name := range guidesOfUsers(t) {
		if listed[name] != 1 {
			t.Errorf("docs/README.md lists %s %d times", name, listed[name])
		}
	}
	for _, name := range []string{"../CHANGELOG.md", "../HACKING.md", "../CONTRIBUTING.md"} {
		if listed[name] != 1 {
			t.Errorf("docs/README.md lists %s %d times", name, listed[name])
		}
	}
	for _, chapter := range []struct{ name, document, heading string }{
		{"overview", "README.md", "# Windows nodes for OpenShift"},
		{"release notes", "../CHANGELOG.md", "# Changelog"},
		{"understanding: support, limits", "support.md", "## Limits"},
		{"understanding: how a host becomes a node", "architecture.md", "## The life of a host"},
		{"enabling: the operator", "install.md", "## From a catalog"},
		{"enabling: the private key", "byoh.md", "## The key"},
		{"creating MachineSets", "machinesets.md", "## A MachineSet"},
		{"creating MachineSets on AWS", "machinesets.md", "### AWS"},
		{"creating MachineSets on Azure", "machinesets.md", "### Azure"},
		{"creating MachineSets on GCP", "machinesets.md", "### GCP"},
		{"creating MachineSets on vSphere", "machinesets.md", "### vSphere"},
		{"the golden image on vSphere", "vsphere.md", "## The template"},
		{"scheduling", "workloads.md", "## RuntimeClass"},
		{"upgrades", "upgrades.md", "## Upgraded components"},
		{"BYOH", "byoh.md", "## Requirements of a host"},
		{"removing nodes of Machines", "machinesets.md", "## Scaling and deleting"},
		{"removing hosts", "byoh.md", "## Adding and removing"},
		{"disabling: the nodes", "uninstall.md", "## First the hosts"},
		{"disabling: the operator", "uninstall.md", "## Then the operator"},
	} {
		if chapter.document != "README.md" && listed[chapter.document] == 0 {
			t.Errorf("%s: the index does not list %s", chapter.name, chapter.document)
		}
		if text := "\n" + readText(t, chapter.document); !strings.Contains(text, "\n"+chapter.heading+"\n") {
			t.Errorf("%s: %s has no heading %q", chapter.name, chapter.document, chapter.heading)
		}
	}
	overview, _, _ := strings.Cut(readText(t, "README.md"), "## Guides")
	for _, part := range []string{"turns Windows Server hosts into nodes", "**You need**", "| AWS, Azure | 2019, 2022, 2025 |", "**Limits**"} {
		_, after, found := strings.Cut(overview, part)
		if !found {
			t.Errorf("the overview does not say, or not in this place: %s", part)
		}
		overview = after
	}
}

// guidesOfUsers returns the documents in docs/, without the index.
func guidesOfUsers(t *testing.T) (names []string) {
	t.Helper()
	for _, name := range guidePaths(t) {
		if !strings.Contains(name, "/") && name != "README.md" {
			names = append(names, name)
		}
	}
	return names
}

func TestTroubleshooting_StartsWithFailedJoin(t *testing.T) {
	text := readText(t, "troubleshooting.md")
	if first := regexp.MustCompile(`(?m)^## (.*)$`).FindStringSubmatch(text); first == nil ||
		first[1] != "The host never becomes a node" {
		t.Errorf("it begins with %q", first)
	}
	reasons := firstCells(t, "conditions.md")
	for _, head := range []string{"| STATUS | check | action |", "| STATUS | action |"} {
		for _, row := range tableRows(t, text, head) {
			for _, status := range codeTexts(row[0]) {
				if reasons[status] == "" {
					t.Errorf("docs/troubleshooting.md has the status %s, which docs/conditions.md does not explain", status)
				}
			}
		}
	}
}

// Administrators with experience of the legacy operator find each deviation on one page.
func TestMigration_EachDeviationListed(t *testing.T) {
	told := map[string]string{}
	for _, row := range tableRows(t, readText(t, "migrating.md"), "| | | legacy operator | now | effect for you |") {
		told[row[1]] = row[0]
	}
	decided := map[string]string{}
	for _, row := range tableRows(t, readSection(t, "requirements.md", "## Deviations"),
		"| ID | requirement | what the operator does | why | pinned by | shown in the lab only |") {
		decided[row[0]] = row[1]
	}
	for id, requirement := range decided {
		if told[id] != requirement {
			t.Errorf("docs/migrating.md says of %s %q, want %q", id, told[id], requirement)
		}
	}
	if len(told) != len(decided) || len(told) < 12 {
		t.Errorf("docs/migrating.md has %d deviations, docs/requirements.md %d", len(told), len(decided))
	}
	if !strings.Contains(readText(t, "migrating.md"), "`community-windows-machine-config-operator`") {
		t.Error("docs/migrating.md does not name the community's package")
	}
}
