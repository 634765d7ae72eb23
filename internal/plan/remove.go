package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Remove returns the plan that restores the host to the state in the ledger. The paths in the ledger come from the
// host's NodeSpecs (nodespec/generate.go). The agent's own directory and C:\k remain: the operator deletes both
// when the plan is empty. Processes of services are known only after the services have stopped: until then
// containerd may start another shim, which would keep files in use. So the stops are a separate plan.
func Remove(facts Facts) Plan {
	r := &removalPlanner{restorePlanner{facts: facts, why: "the host is restored to its original state"}}
	r.endServices()
	if len(r.steps) > 0 {
		return Plan{Steps: r.steps}
	}
	r.killProcesses()
	r.deleteNetworks()
	r.restoreStaticAddress()
	for _, name := range slices.Sorted(maps.Keys(facts.Ledger.Firewall)) {
		if name != nodespec.RuleSSH {
			r.restoreFirewallRule(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(facts.Ledger.Environment)) {
		r.restoreVariable(name)
	}
	for _, fingerprint := range slices.Sorted(maps.Keys(facts.Ledger.TrustedCertificates)) {
		r.restoreTrustedCertificate(fingerprint)
	}
	for _, destination := range slices.Sorted(maps.Keys(facts.Ledger.Routes)) {
		r.restoreRoute(destination)
	}
	r.restoreEventSource()
	for _, exclusion := range facts.Ledger.Exclusions {
		r.restoreExclusion(exclusion)
	}
	r.restorePaths()
	for _, name := range r.orderedServiceNames() {
		r.restoreService(name)
	}
	r.disableFeatures()
	r.restoreHostName()
	r.addRestart()
	r.restoreLoginAccess()
	return Plan{Steps: r.steps}
}

type removalPlanner struct{ restorePlanner }

// endServices ends the agent's own service first, to prevent repairs, then the other services, dependents before
// dependencies.
func (r *removalPlanner) endServices() {
	names := r.orderedServiceNames()
	isAgent := func(name string) bool { return strings.EqualFold(name, nodespec.ServiceAgent) }
	if i := slices.IndexFunc(names, isAgent); i >= 0 {
		r.endService(names[i])
		names = slices.Delete(names, i, i+1)
	}
	for _, name := range slices.Backward(names) {
		r.endPods(name)
		r.endService(name)
	}
}

// endPods ends the pods before their runtime stops. The kubelet, which would recreate the pods, depends on the
// runtime and was stopped before.
func (r *removalPlanner) endPods(service string) {
	fact, there := r.facts.findService(service)
	program := host.SplitCommandLine(cmp.Or(fact.RunningCommandLine, fact.CommandLine))
	if there && strings.EqualFold(service, nodespec.ServiceContainerd) && fact.State == host.ServiceRunning &&
		len(program) > 0 && nodespec.IsWithin(program[0], nodespec.Root) {
		r.addStep(EndPods{Service: fact.Name, Endpoint: nodespec.ContainerdEndpoint}, true)
	}
}

// killProcesses kills processes that outlive their service, such as container shims, but not the agent.
func (r *removalPlanner) killProcesses() {
	ofServices := map[int]bool{}
	for _, service := range r.facts.Services {
		ofServices[service.PID] = true
	}
	for _, process := range r.facts.Processes {
		if !ofServices[process.PID] && !nodespec.IsWithin(process.Path, nodespec.AgentRoot) && r.isRemoved(process.Path) {
			r.addStep(KillProcess{Process: process}, true)
		}
	}
}

// isRemoved reports whether the removal deletes the path.
func (r *removalPlanner) isRemoved(path string) bool {
	if nodespec.IsWithin(path, nodespec.Root) {
		return true
	}
	for known, before := range r.facts.Ledger.Paths {
		if !before.Existed && nodespec.IsWithin(path, known) {
			return true
		}
	}
	return false
}

func (r *removalPlanner) deleteNetworks() {
	if service, there := r.facts.HNS[nodespec.ServiceHNS]; r.facts.HNSSilent != "" && there &&
		service.State == host.ServiceStopped {
		r.addStep(StartService{Service: nodespec.ServiceHNS}, false)
	}
	if r.facts.HNSSilent != "" {
		for _, name := range r.facts.Ledger.Networks { // the step reports why HNS does not respond
			r.addStep(DeleteNetwork{Network: name}, true)
		}
		return
	}
	for _, network := range r.facts.Networks {
		if containsFold(r.facts.Ledger.Networks, network.Name) {
			r.addStep(DeleteNetwork{Network: network.Name}, true)
		}
	}
}

// restorePaths restores files, links and directories, children before parents. The content of created directories is
// removed with the directory.
func (r *removalPlanner) restorePaths() {
	var paths []string
	for path := range r.facts.Ledger.Paths {
		if !nodespec.IsSamePath(path, nodespec.Root) && !nodespec.IsWithin(path, nodespec.AgentRoot) && !r.isInRemovedDirectory(path) {
			paths = append(paths, path)
		}
	}
	slices.SortFunc(paths, func(a, b string) int {
		if depth := strings.Count(b, `\`) - strings.Count(a, `\`); depth != 0 {
			return depth
		}
		return strings.Compare(a, b)
	})
	for _, path := range paths {
		if !r.facts.isAwaitingRestart(path) {
			r.restorePath(path)
		}
	}
	r.restoreRoot()
}

// isInRemovedDirectory reports whether the path is in a directory that did not exist originally.
func (r *removalPlanner) isInRemovedDirectory(path string) bool {
	for folder, before := range r.facts.Ledger.Paths {
		if !before.Existed && !nodespec.IsSamePath(folder, path) && nodespec.IsWithin(path, folder) {
			return true
		}
	}
	return false
}

// restoreRoot removes all entries of C:\k except the original entries and the agent.
func (r *removalPlanner) restoreRoot() {
	before, known := r.facts.Ledger.Paths[nodespec.Root]
	if !known {
		return
	}
	agent := strings.TrimPrefix(nodespec.AgentRoot, nodespec.Root+`\`)
	fact, there := r.facts.Files[nodespec.Root]
	if !before.Existed {
		before.Access = fact.Access
	}
	r.restoreDirectory(nodespec.Root, before, fact, there, agent)
}

func (r *removalPlanner) disableFeatures() {
	// Parts of the feature Containers have Containers as name prefix and are disabled first.
	for _, feature := range slices.Backward(slices.Sorted(maps.Keys(r.facts.Ledger.Features))) {
		if isOn(r.facts.Features[feature]) && !isOn(r.facts.Ledger.Features[feature]) {
			r.addStep(DisableFeature{Feature: feature}, false)
		}
	}
}

func isOn(state host.FeatureState) bool {
	return state == host.FeatureEnabled || state == host.FeatureEnablePending
}

func (r *removalPlanner) restoreHostName() {
	before := r.facts.Ledger.HostName
	if before != "" && !strings.EqualFold(nextHostName(r.facts), before) {
		r.addStep(SetHostName{HostName: before}, false)
	}
}

// addRestart ends the plan with a restart if required. As with an installation, the agent plans again before the
// restart.
func (r *removalPlanner) addRestart() {
	reason := r.restartReason()
	if reason == "" {
		return
	}
	r.steps = append(r.steps, Step{Name: Name(Reboot{}), Operation: Reboot{Reason: reason}, Reason: reason, Reboots: true,
		DisruptsPods: true})
}

// restoreLoginAccess restores the settings for the operator's login after the last restart, because the operator must
// log in after each restart.
func (r *removalPlanner) restoreLoginAccess() {
	if r.restartReason() != "" {
		return
	}
	r.restoreStartTypes()
	if _, known := r.facts.Ledger.Firewall[nodespec.RuleSSH]; known {
		r.restoreFirewallRule(nodespec.RuleSSH)
	}
}

func (r *removalPlanner) restartReason() string {
	for _, feature := range slices.Sorted(maps.Keys(r.facts.Ledger.Features)) {
		on := isOn(r.facts.Features[feature]) && !isOn(r.facts.Ledger.Features[feature])
		if on || r.facts.Features[feature] == host.FeatureDisablePending {
			return "the Windows feature " + feature + " is removed only after a restart"
		}
	}
	for _, path := range slices.Sorted(maps.Keys(r.facts.Ledger.InUse)) {
		if r.facts.isAwaitingRestart(path) {
			return "files of containers below " + path + " are in use until a restart"
		}
	}
	before := r.facts.Ledger.HostName
	if before != "" && (!strings.EqualFold(r.facts.System.HostName, before) || r.facts.System.PendingHostName != "") {
		return "the computer name " + before + " takes effect only after a restart"
	}
	return ""
}
