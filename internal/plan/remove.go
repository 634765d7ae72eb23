package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Remove returns the plan that restores the host as the ledger says; the NodeSpecs that the host had name its paths
// (nodespec/generate.go). The agent's own folder stays, and C:\k with it:
// the operator deletes them when the plan is empty. Processes of services are known only after the services have
// stopped: until then containerd may start one more shim, which would hold its files. So the stops are a plan of their
// own.
func Remove(facts Facts) Plan {
	r := &remover{restorer{facts: facts, why: "the host is restored to its original state"}}
	r.endServices()
	if len(r.steps) > 0 {
		return Plan{Steps: r.steps}
	}
	r.killProcesses()
	r.deleteNetworks()
	r.staticAddress()
	for _, name := range slices.Sorted(maps.Keys(facts.Ledger.Firewall)) {
		if name != nodespec.RuleSSH {
			r.firewallRule(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(facts.Ledger.Environment)) {
		r.variable(name)
	}
	for _, fingerprint := range slices.Sorted(maps.Keys(facts.Ledger.TrustedCertificates)) {
		r.trustedCertificate(fingerprint)
	}
	for _, destination := range slices.Sorted(maps.Keys(facts.Ledger.Routes)) {
		r.route(destination)
	}
	r.eventSource()
	for _, exclusion := range facts.Ledger.Exclusions {
		r.exclusion(exclusion)
	}
	r.paths()
	for _, name := range r.services() {
		r.restoreService(name)
	}
	r.features()
	r.hostName()
	r.restart()
	r.access()
	return Plan{Steps: r.steps}
}

// remover plans a removal.
type remover struct{ restorer }

// endServices ends the agent's own service first, so that it repairs nothing, then the others, dependents before what
// they need.
func (r *remover) endServices() {
	names := r.services()
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

// endPods ends the pods before their runtime stops. The kubelet, which would make them again, has stopped before: it
// depends on the runtime.
func (r *remover) endPods(service string) {
	fact, there := r.facts.service(service)
	program := host.SplitCommandLine(cmp.Or(fact.RunningCommandLine, fact.CommandLine))
	if there && strings.EqualFold(service, nodespec.ServiceContainerd) && fact.State == host.ServiceRunning &&
		len(program) > 0 && nodespec.Within(program[0], nodespec.Root) {
		r.add(EndPods{Service: fact.Name, Endpoint: nodespec.ContainerdEndpoint}, true)
	}
}

// killProcesses ends processes that outlive their service, such as container shims. It does not end the agent.
func (r *remover) killProcesses() {
	ofServices := map[int]bool{}
	for _, service := range r.facts.Services {
		ofServices[service.PID] = true
	}
	for _, process := range r.facts.Processes {
		if !ofServices[process.PID] && !nodespec.Within(process.Path, nodespec.AgentRoot) && r.vanishes(process.Path) {
			r.add(KillProcess{Process: process}, true)
		}
	}
}

// vanishes reports whether the removal takes what lies at the path.
func (r *remover) vanishes(path string) bool {
	if nodespec.Within(path, nodespec.Root) {
		return true
	}
	for known, before := range r.facts.Ledger.Paths {
		if !before.Existed && nodespec.Within(path, known) {
			return true
		}
	}
	return false
}

func (r *remover) deleteNetworks() {
	if service, there := r.facts.HNS[nodespec.ServiceHNS]; r.facts.HNSSilent != "" && there &&
		service.State == host.ServiceStopped {
		r.add(StartService{Service: nodespec.ServiceHNS}, false)
	}
	if r.facts.HNSSilent != "" {
		for _, name := range r.facts.Ledger.Networks { // the step says why it does not answer
			r.add(DeleteNetwork{Network: name}, true)
		}
		return
	}
	for _, network := range r.facts.Networks {
		if containsFold(r.facts.Ledger.Networks, network.Name) {
			r.add(DeleteNetwork{Network: network.Name}, true)
		}
	}
}

// paths gives back files, links and folders, children before parents. What lies in a folder of ours goes with it.
func (r *remover) paths() {
	var paths []string
	for path := range r.facts.Ledger.Paths {
		if !nodespec.SamePath(path, nodespec.Root) && !nodespec.Within(path, nodespec.AgentRoot) && !r.goesWithFolder(path) {
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
		if !r.facts.mounted(path) {
			r.path(path)
		}
	}
	r.root()
}

// goesWithFolder reports whether the path lies in a folder that was not there before us.
func (r *remover) goesWithFolder(path string) bool {
	for folder, before := range r.facts.Ledger.Paths {
		if !before.Existed && !nodespec.SamePath(folder, path) && nodespec.Within(path, folder) {
			return true
		}
	}
	return false
}

// root empties C:\k down to what was there before and the agent.
func (r *remover) root() {
	before, known := r.facts.Ledger.Paths[nodespec.Root]
	if !known {
		return
	}
	agent := strings.TrimPrefix(nodespec.AgentRoot, nodespec.Root+`\`)
	fact, there := r.facts.Files[nodespec.Root]
	if !before.Existed {
		before.Access = fact.Access
	}
	r.directory(nodespec.Root, before, fact, there, agent)
}

func (r *remover) features() {
	// Parts of Containers, which are named after it, go before it.
	for _, feature := range slices.Backward(slices.Sorted(maps.Keys(r.facts.Ledger.Features))) {
		if isOn(r.facts.Features[feature]) && !isOn(r.facts.Ledger.Features[feature]) {
			r.add(DisableFeature{Feature: feature}, false)
		}
	}
}

func isOn(state host.FeatureState) bool {
	return state == host.FeatureEnabled || state == host.FeatureEnablePending
}

func (r *remover) hostName() {
	before := r.facts.Ledger.HostName
	if before != "" && !strings.EqualFold(nextHostName(r.facts), before) {
		r.add(SetHostName{HostName: before}, false)
	}
}

// restart ends the plan with a restart when something needs it. As with an installation, the agent looks again before
// it restarts.
func (r *remover) restart() {
	reason := r.restartReason()
	if reason == "" {
		return
	}
	r.steps = append(r.steps, Step{Name: Name(Reboot{}), Operation: Reboot{Reason: reason}, Reason: reason, Reboots: true,
		DisturbsPods: true})
}

// access gives back what lets the operator in, when no restart is to come any more: after it the operator must log in
// once again.
func (r *remover) access() {
	if r.restartReason() != "" {
		return
	}
	r.startTypes()
	if _, known := r.facts.Ledger.Firewall[nodespec.RuleSSH]; known {
		r.firewallRule(nodespec.RuleSSH)
	}
}

func (r *remover) restartReason() string {
	for _, feature := range slices.Sorted(maps.Keys(r.facts.Ledger.Features)) {
		on := isOn(r.facts.Features[feature]) && !isOn(r.facts.Ledger.Features[feature])
		if on || r.facts.Features[feature] == host.FeatureDisablePending {
			return "the Windows feature " + feature + " is removed only after a restart"
		}
	}
	for _, path := range slices.Sorted(maps.Keys(r.facts.Ledger.InUse)) {
		if r.facts.mounted(path) {
			return "files of containers below " + path + " are in use until a restart"
		}
	}
	before := r.facts.Ledger.HostName
	if before != "" && (!strings.EqualFold(r.facts.System.HostName, before) || r.facts.System.PendingHostName != "") {
		return "the computer name " + before + " takes effect only after a restart"
	}
	return ""
}
