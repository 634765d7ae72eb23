package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/policy/support"
)

const (
	begin = "<!-- begin of what hack/support writes -->"
	end   = "<!-- end of what hack/support writes -->"
)

// rewrite returns the document with the text between the markers. It keeps every other byte.
func rewrite(document []byte, text string) ([]byte, error) {
	before, rest, found := strings.Cut(string(document), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended || strings.Contains(after, begin) {
		return nil, fmt.Errorf("the document needs exactly one line %q and, after it, exactly one line %q", begin, end)
	}
	return []byte(before + begin + "\n\n" + text + "\n" + end + after), nil
}

// render writes the tables.
func render(platforms []support.Platform, releases []support.WindowsRelease, lines []support.ReleaseLine) string {
	return strings.Join([]string{
		"### The cluster's version\n\n" + versions(lines),
		"### Windows by platform\n\n" + windows(platforms, releases),
		"### Networks and Machines by platform\n\n" + platformRules(platforms),
		"### Windows by VXLAN port\n\n" + ports(releases),
	}, "\n")
}

func versions(lines []support.ReleaseLine) string {
	t := table("operator", "OpenShift", "Kubernetes")
	for _, l := range lines {
		t.row(fmt.Sprintf("%d.x", l.Operator), l.LeastCluster+" and later of "+l.Cluster, l.Kubernetes)
	}
	return t.String() + "\nNo release of the operator serves a cluster below OpenShift " + support.ClusterFloor + ".\n"
}

func windows(platforms []support.Platform, releases []support.WindowsRelease) string {
	head := []string{"platform", "`Infrastructure` says"}
	for _, r := range releases {
		head = append(head, r.Name)
	}
	t := table(head...)
	for _, p := range platforms {
		cells := []string{p.Title, "`" + p.Name + "`"}
		for _, r := range releases {
			cells = append(cells, answer(slices.Contains(p.Windows, r.Name), builds(r)))
		}
		t.row(cells...)
	}
	return t.String()
}

func builds(r support.WindowsRelease) string {
	if r.LeastRevision == 0 {
		return r.Version + ", any update"
	}
	return fmt.Sprintf("%s.%d or later", r.Version, r.LeastRevision)
}

func platformRules(platforms []support.Platform) string {
	t := table("platform", "custom VXLAN port", "hosts you bring", "Machines", "longest Machine name")
	for _, p := range platforms {
		longest := cmp.Or(p.MachineNameLimit, -1)
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
		t.row(p.Title, port, "yes", answer(p.Machines, "yes"), limit)
	}
	return t.String()
}

func ports(releases []support.WindowsRelease) string {
	t := table("Windows", "usual port (4789)", "custom port")
	for _, r := range releases {
		t.row(r.Name, "yes", answer(r.CustomVXLANPort, "yes"))
	}
	return t.String()
}

func answer(is bool, yes string) string {
	if is {
		return yes
	}
	return "no"
}

// markdown is a table that grows by rows.
type markdown struct{ strings.Builder }

func table(head ...string) *markdown {
	t := &markdown{}
	t.row(head...)
	t.WriteString("|" + strings.Repeat("---|", len(head)) + "\n")
	return t
}

func (t *markdown) row(cells ...string) {
	t.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}
