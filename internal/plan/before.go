package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// restorePlanner plans the steps that restore the state recorded in the ledger. A removal restores every entry; an
// installation restores the entries that the spec no longer lists.
type restorePlanner struct {
	facts Facts
	why   string // reason of each step, in words for an administrator
	steps []Step
}

func (r *restorePlanner) addStep(operation Operation, disturbs bool) {
	r.steps = append(r.steps, Step{Name: Name(operation), Operation: operation, Reason: r.why, DisruptsPods: disturbs})
}

// orderedServiceNames returns the names of the ledger's services, each after its dependencies.
func (r *restorePlanner) orderedServiceNames() []string {
	names := slices.Sorted(maps.Keys(r.facts.Ledger.Services))
	return inOrder(names, func(name string) []string {
		service, _ := r.facts.findService(name)
		return service.Dependencies
	})
}

// endService stops a service that differs from its original state, and deletes the service if it did not exist
// originally.
func (r *restorePlanner) endService(name string) {
	fact, there := r.facts.findService(name)
	before := r.facts.Ledger.Services[name]
	if !there || isOriginalService(fact, before) {
		return
	}
	if fact.State != host.ServiceStopped {
		r.addStep(StopService{Service: name}, !strings.EqualFold(name, nodespec.ServiceAgent))
	}
	if before == nil {
		r.addStep(DeleteService{Service: name}, false)
	}
}

// restoreService restores the original configuration and state of a service.
func (r *restorePlanner) restoreService(name string) {
	before := r.facts.Ledger.Services[name]
	if fact, _ := r.facts.findService(name); before != nil && !isOriginalService(fact, before) {
		r.addStep(RestoreService{Service: *before}, false)
	}
}

// isOriginalService reports whether a service has the original configuration, and the original state, running or not.
func isOriginalService(fact host.Service, before *host.Service) bool {
	if before == nil {
		return false
	}
	ran, runs := before.State == host.ServiceRunning, fact.State == host.ServiceRunning
	stale := runs && fact.RunningCommandLine != "" && !nodespec.IsRunningAs(fact.RunningCommandLine, before.CommandLine)
	return configureReason(before.ServiceConfig, fact, fact.Name != "") == "" && ran == runs && !stale
}

func (r *restorePlanner) restoreFirewallRule(name string) {
	before := r.facts.Ledger.Firewall[name]
	fact, there := r.facts.Firewall[name]
	switch {
	case before == nil && there:
		r.addStep(DeleteFirewallRule{Rule: name}, false)
	case before != nil && (!there || fact != *before):
		r.addStep(SetFirewallRule{Rule: *before}, false)
	}
}

func (r *restorePlanner) restoreVariable(name string) {
	before := r.facts.Ledger.Environment[name]
	value, there := r.facts.Environment[name]
	switch {
	case before == nil && there:
		r.addStep(SetEnvironment{Name: name, Unset: true}, false)
	case before != nil && (!there || value != *before):
		r.addStep(SetEnvironment{Name: name, Value: *before}, false)
	}
}

// restorePath restores a file, link or directory.
func (r *restorePlanner) restorePath(path string) {
	before := r.facts.Ledger.Paths[path]
	fact, there := r.facts.Files[path]
	switch {
	case !before.Existed && there:
		r.addStep(RemovePath{Path: path}, false)
	case !before.Existed:
	case before.Directory:
		r.restoreDirectory(path, before, fact, there)
	case before.LinkTarget != "":
		if fact.LinkTarget != before.LinkTarget {
			r.addStep(MakeLink{Link: nodespec.Link{Path: path, Target: before.LinkTarget}}, false)
		}
	case !there || fact.LinkTarget != "" || fact.SHA256 != Digest(before.Content) ||
		!isSameAccess(fact.Access, before.Access):
		r.addStep(WriteFile{File: nodespec.File{Path: path, Content: string(before.Content), Access: before.Access}}, false)
	}
}

// restoreDirectory restores a directory. The entries in keep are kept in addition to the original entries.
func (r *restorePlanner) restoreDirectory(path string, before PathBefore, fact FileFact, there bool, keep ...string) {
	keep = slices.Concat(before.Entries, keep, r.foreignEntries(path, fact))
	if there && slices.ContainsFunc(fact.Entries, func(entry string) bool { return !containsFold(keep, entry) }) {
		r.addStep(RemovePath{Path: path, Keep: keep}, false)
	}
	if !there || !isSameAccess(fact.Access, before.Access) {
		r.addStep(MakeDirectory{Directory: nodespec.Directory{Path: path, Access: normalAccess(before.Access)}}, false)
	}
}

// foreignEntries returns the entries of a shared directory that neither the operator nor the node's programs created.
// Other programs may create entries there at any time, even while the host is a node.
func (r *restorePlanner) foreignEntries(folder string, fact FileFact) []string {
	var names []string
	for _, name := range fact.Entries {
		own, shared := nodespec.EntryOwnership(folder, name)
		if shared && !own && !r.isRecorded(folder+`\`+name) {
			names = append(names, name)
		}
	}
	return names
}

func (r *restorePlanner) isRecorded(path string) bool {
	return hasPath(slices.Collect(maps.Keys(r.facts.Ledger.Paths)), path)
}

func containsFold(list []string, name string) bool {
	return slices.ContainsFunc(list, func(each string) bool { return strings.EqualFold(each, name) })
}

// isRestored reports whether the restoration that the function plans requires no more steps.
func isRestored(facts Facts, plan func(*restorePlanner)) bool {
	r := &restorePlanner{facts: facts}
	plan(r)
	return len(r.steps) == 0
}
