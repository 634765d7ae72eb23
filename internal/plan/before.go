package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// restorer plans the steps that restore the state recorded in the ledger. A removal restores every entry; an
// installation restores the entries that the spec no longer lists.
type restorer struct {
	facts Facts
	why   string // reason of each step, in words for an administrator
	steps []Step
}

func (r *restorer) add(operation Operation, disturbs bool) {
	r.steps = append(r.steps, Step{Name: Name(operation), Operation: operation, Reason: r.why, DisturbsPods: disturbs})
}

// services returns the names of the ledger's services, each after its dependencies.
func (r *restorer) services() []string {
	names := slices.Sorted(maps.Keys(r.facts.Ledger.Services))
	return inOrder(names, func(name string) []string {
		service, _ := r.facts.service(name)
		return service.Dependencies
	})
}

// endService stops a service that differs from its original state, and deletes the service if it did not exist.
func (r *restorer) endService(name string) {
	fact, there := r.facts.service(name)
	before := r.facts.Ledger.Services[name]
	if !there || sameService(fact, before) {
		return
	}
	if fact.State != host.ServiceStopped {
		r.add(StopService{Service: name}, !strings.EqualFold(name, nodespec.ServiceAgent))
	}
	if before == nil {
		r.add(DeleteService{Service: name}, false)
	}
}

// restoreService restores the original configuration and state of a service.
func (r *restorer) restoreService(name string) {
	before := r.facts.Ledger.Services[name]
	if fact, _ := r.facts.service(name); before != nil && !sameService(fact, before) {
		r.add(RestoreService{Service: *before}, false)
	}
}

// sameService reports whether a service has the original configuration, and the original state, running or not.
func sameService(fact host.Service, before *host.Service) bool {
	if before == nil {
		return false
	}
	ran, runs := before.State == host.ServiceRunning, fact.State == host.ServiceRunning
	stale := runs && fact.RunningCommandLine != "" && !nodespec.RunsAs(fact.RunningCommandLine, before.CommandLine)
	return configureReason(before.ServiceConfig, fact, fact.Name != "") == "" && ran == runs && !stale
}

func (r *restorer) firewallRule(name string) {
	before := r.facts.Ledger.Firewall[name]
	fact, there := r.facts.Firewall[name]
	switch {
	case before == nil && there:
		r.add(DeleteFirewallRule{Rule: name}, false)
	case before != nil && (!there || fact != *before):
		r.add(SetFirewallRule{Rule: *before}, false)
	}
}

func (r *restorer) variable(name string) {
	before := r.facts.Ledger.Environment[name]
	value, there := r.facts.Environment[name]
	switch {
	case before == nil && there:
		r.add(SetEnvironment{Name: name, Unset: true}, false)
	case before != nil && (!there || value != *before):
		r.add(SetEnvironment{Name: name, Value: *before}, false)
	}
}

// path restores a file, link or directory.
func (r *restorer) path(path string) {
	before := r.facts.Ledger.Paths[path]
	fact, there := r.facts.Files[path]
	switch {
	case !before.Existed && there:
		r.add(RemovePath{Path: path}, false)
	case !before.Existed:
	case before.Directory:
		r.directory(path, before, fact, there)
	case before.LinkTarget != "":
		if fact.LinkTarget != before.LinkTarget {
			r.add(MakeLink{Link: nodespec.Link{Path: path, Target: before.LinkTarget}}, false)
		}
	case !there || fact.LinkTarget != "" || fact.SHA256 != Digest(before.Content) ||
		!sameAccess(fact.Access, before.Access):
		r.add(WriteFile{File: nodespec.File{Path: path, Content: string(before.Content), Access: before.Access}}, false)
	}
}

// directory restores a directory. The entries in keep are kept in addition to the original entries.
func (r *restorer) directory(path string, before PathBefore, fact FileFact, there bool, keep ...string) {
	keep = slices.Concat(before.Entries, keep, r.foreign(path, fact))
	if there && slices.ContainsFunc(fact.Entries, func(entry string) bool { return !containsFold(keep, entry) }) {
		r.add(RemovePath{Path: path, Keep: keep}, false)
	}
	if !there || !sameAccess(fact.Access, before.Access) {
		r.add(MakeDirectory{Directory: nodespec.Directory{Path: path, Access: normalAccess(before.Access)}}, false)
	}
}

// foreign returns the entries of a shared directory that neither the operator nor the node's programs created.
// Other programs may create entries there at any time, even while the host is a node.
func (r *restorer) foreign(folder string, fact FileFact) []string {
	var names []string
	for _, name := range fact.Entries {
		own, shared := nodespec.NodesOwn(folder, name)
		if shared && !own && !r.recorded(folder+`\`+name) {
			names = append(names, name)
		}
	}
	return names
}

func (r *restorer) recorded(path string) bool {
	return samePathIn(slices.Collect(maps.Keys(r.facts.Ledger.Paths)), path)
}

func containsFold(list []string, name string) bool {
	return slices.ContainsFunc(list, func(each string) bool { return strings.EqualFold(each, name) })
}

// restored reports whether the restoration that the function plans requires no more steps.
func restored(facts Facts, plan func(*restorer)) bool {
	r := &restorer{facts: facts}
	plan(r)
	return len(r.steps) == 0
}
