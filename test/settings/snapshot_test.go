package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// ignored lists the directories with independent changes: logs, directories of the container runtime and the
// kubelet, and the agent's memory.
var ignored = []string{`C:\var\log`, `C:\ProgramData\containerd`, `C:\k\wicd`, nodespec.LandingRoot,
	`C:\var\lib\kubelet\pods`, `C:\Windows\Temp`}

// takeSnapshot returns the state of a host without independent changes, such as pods with their processes and
// endpoints.
func takeSnapshot(h *testenv.Host) fake.Snapshot {
	s := h.Machine().Snapshot()
	for path := range s.Files {
		if slices.ContainsFunc(ignored, func(folder string) bool { return strings.HasPrefix(path, folder+`\`) }) {
			delete(s.Files, path)
		}
	}
	s.Processes, s.Endpoints = nil, nil
	return s
}

// takeSnapshots returns the states of all hosts, by name.
func (l lab) takeSnapshots() map[string]fake.Snapshot {
	all := map[string]fake.Snapshot{}
	for _, h := range l.Hosts() {
		all[h.Options.Name] = takeSnapshot(h)
	}
	return all
}

// diffSnapshots returns the differences on a host, one per line: "file C:\k\x: added", "service kubelet: environment",
// "root ab12: added".
func diffSnapshots(before, after fake.Snapshot) (changes []string) {
	add := func(format string, args ...any) { changes = append(changes, fmt.Sprintf(format, args...)) }
	for path, file := range before.Files {
		switch now, is := after.Files[path]; {
		case !is:
			add("file %s: removed", path)
		case now.Access != file.Access:
			add("file %s: access", path)
		case now != file:
			add("file %s: changed", path)
		}
	}
	for path, file := range after.Files {
		if _, was := before.Files[path]; !was && !file.Directory {
			add("file %s: added", path)
		} else if !was {
			add("folder %s: added", path)
		}
	}
	for name, service := range before.Services {
		now, is := after.Services[name]
		if !is {
			add("service %s: removed", name)
			continue
		}
		for what, differs := range map[string]bool{
			"command line": now.Config.CommandLine != service.Config.CommandLine,
			"environment":  !slices.Equal(now.Config.Environment, service.Config.Environment),
			"state":        now.State != service.State,
		} {
			if differs {
				add("service %s: %s", name, what)
			}
		}
		now.Config.CommandLine, now.Config.Environment = service.Config.CommandLine, service.Config.Environment
		if !cmp.Equal(now.Config, service.Config) {
			add("service %s: another configuration", name)
		}
	}
	for name := range after.Services {
		if _, was := before.Services[name]; !was {
			add("service %s: added", name)
		}
	}
	changes = append(changes, listChanges("root", before.Roots, after.Roots)...)
	changes = append(changes, listChanges("route", before.Routes, after.Routes)...)
	// A setting must not change other properties.
	for _, s := range []*fake.Snapshot{&before, &after} {
		s.Files, s.Services, s.Roots, s.Routes = nil, nil, nil, nil
	}
	if diff := cmp.Diff(before, after); diff != "" {
		add("something else:\n%s", diff)
	}
	slices.Sort(changes)
	return changes
}

// listChanges returns the differences between two lists.
func listChanges(what string, before, after []string) (changes []string) {
	for _, entry := range before {
		if !slices.Contains(after, entry) {
			changes = append(changes, what+" "+entry+": removed")
		}
	}
	for _, entry := range after {
		if !slices.Contains(before, entry) {
			changes = append(changes, what+" "+entry+": added")
		}
	}
	return changes
}
