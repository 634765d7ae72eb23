package docs_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// The document contains the operator's criteria.
func TestGeneratedTablesOfWhatIsSupported(t *testing.T) {
	syncDocument(t, "support.md", supportTables(support.Platforms(), support.WindowsReleases(), support.ReleaseLines()))
}

// supportTables returns the tables for docs/support.md.
func supportTables(platforms []support.Platform, releases []support.WindowsRelease, lines []support.ReleaseLine) string {
	return strings.Join([]string{
		"### The cluster's version\n\n" + versionTable(lines),
		"### Windows by platform\n\n" + windowsTable(platforms, releases),
		"### Networks and Machines by platform\n\n" + platformRules(platforms),
		"### Windows by VXLAN port\n\n" + portTable(releases),
	}, "\n")
}

func versionTable(lines []support.ReleaseLine) string {
	t := newTable("operator", "OpenShift", "Kubernetes of Windows nodes")
	for _, line := range lines {
		for _, m := range line.Minors {
			t.addRow(fmt.Sprintf("%d.x", line.Operator), m.MinVersion()+" and later of "+m.OpenShift+textIf(m.Preview, " (preview)"), m.Kubernetes)
		}
	}
	return t.String() + "\nNo release of the operator serves a cluster below OpenShift " + support.MinClusterVersion + ".\n"
}

func windowsTable(platforms []support.Platform, releases []support.WindowsRelease) string {
	head := []string{"platform", "value in `Infrastructure`"}
	for _, r := range releases {
		head = append(head, r.Name)
	}
	t := newTable(head...)
	for _, p := range platforms {
		cells := []string{p.Title, "`" + p.Name + "`"}
		for _, r := range releases {
			cells = append(cells, textOrNo(slices.Contains(p.Windows, r.Name), formatBuild(r)))
		}
		t.addRow(cells...)
	}
	return t.String()
}

func formatBuild(r support.WindowsRelease) string {
	if r.MinRevision == 0 {
		return r.Version + ", any update"
	}
	return fmt.Sprintf("%s.%d or later", r.Version, r.MinRevision)
}

func platformRules(platforms []support.Platform) string {
	t := newTable("platform", "custom VXLAN port", "your own hosts", "Machines", "maximum length of a Machine name")
	for _, p := range platforms {
		longest := cmp.Or(p.MaxMachineNameLength, -1)
		limit := fmt.Sprintf("%d characters, so %d for a MachineSet", longest, longest-support.MachineSuffix)
		if longest < 0 {
			limit = "any"
		}
		if !p.Machines {
			limit = "-"
		}
		port := "not needed"
		if p.CustomVXLANPort {
			port = "**required**"
		}
		t.addRow(p.Title, port, "yes", textOrNo(p.Machines, "yes"), limit)
	}
	return t.String()
}

func portTable(releases []support.WindowsRelease) string {
	t := newTable("Windows", "usual port (4789)", "custom port")
	for _, r := range releases {
		t.addRow(r.Name, "yes", textOrNo(r.CustomVXLANPort, "yes"))
	}
	return t.String()
}

func textIf(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

func textOrNo(is bool, yes string) string {
	if is {
		return yes
	}
	return "no"
}

func TestSupportTables(t *testing.T) {
	got := supportTables(
		[]support.Platform{
			{Name: "Cloud", Title: "The Cloud", Windows: []string{"Windows B"}, Machines: true, MaxMachineNameLength: 15,
				CustomVXLANPort: true},
			{Name: "None", Title: "no platform", Windows: []string{"Windows A", "Windows B"}},
			{Name: "Other", Title: "Another", Machines: true},
		},
		[]support.WindowsRelease{{Name: "Windows A", Version: "10.0.1"}, {Name: "Windows B", Version: "10.0.2",
			MinRevision: 7, CustomVXLANPort: true}},
		[]support.ReleaseLine{{Operator: 12, Minors: []support.Minor{{OpenShift: "5.0", Kubernetes: "1.36", MinPatch: 3},
			{OpenShift: "5.1", Kubernetes: "1.37", Preview: true}}}},
	)
	for _, want := range []string{
		"| 12.x | 5.0.3 and later of 5.0 | 1.36 |\n",
		"| 12.x | 5.1.0 and later of 5.1 (preview) | 1.37 |\n",
		"below OpenShift 4.6.8.",
		"| platform | value in `Infrastructure` | Windows A | Windows B |\n|---|---|---|---|\n",
		"| The Cloud | `Cloud` | no | 10.0.2.7 or later |\n",
		"| no platform | `None` | 10.0.1, any update | 10.0.2.7 or later |\n",
		"| The Cloud | **required** | yes | yes | 15 characters, so 9 for a MachineSet |\n",
		"| no platform | not needed | yes | no | - |\n",
		"| Another | not needed | yes | yes | any |\n",
		"| Windows A | yes | no |\n| Windows B | yes | yes |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}
