package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Make returns the plan that applies the spec to a host with these facts. A restart of the host ends the plan; the
// remaining steps are planned with the facts after the restart. Steps with unmet needs are omitted, and the plan
// lists the needs.
func Make(facts Facts, spec nodespec.NodeSpec) Plan {
	m := newPlanner(facts, spec)
	m.reboot = cmp.Or(m.reboot, m.staticAddressReboot())
	m.addAllSteps()
	return m.buildPlan()
}

func (m *planner) addAllSteps() {
	m.stopForeignAgent()
	m.makeDirectories()
	m.installReleases()
	m.addExclusions()
	m.stopServices()
	m.killReplaced()
	m.makeLinks()
	m.removeNetworkFiles()
	m.writeFiles()
	m.trustCertificates()
	m.addEventSource()
	m.setFirewall()
	m.setLoginStart()
	m.setEnvironment()
	m.enableFeatures()
	m.setHostName()
	m.requestCertificates()
	m.keepStaticAddress()
	if m.reboot != "" {
		m.addRestart()
		return
	}
	m.installCertificates()
	m.addRoutes()
	m.wakeNetworking()
	m.startServices()
	m.setUpNetwork()
	if len(m.unavailableReleases) == 0 { // otherwise unchanged services may need stale objects
		m.restoreStale()
	}
}

// Commit returns the plan that removes all objects that only earlier specs needed.
func Commit(facts Facts, spec nodespec.NodeSpec) Plan {
	m := newPlanner(facts, spec)
	m.restoreStale()
	return Plan{Steps: m.steps}
}

// Restart returns the plan that restarts the host. A preceding step, if necessary, ensures that the operator can
// log in afterwards.
func Restart(login LoginFacts, reason string) Plan {
	return Plan{Steps: append(loginStart(login), Step{
		Name: Name(Reboot{}), Operation: Reboot{Reason: reason}, Reason: reason, Reboots: true, DisruptsPods: true,
	})}
}

// planner holds the shared state of a plan's parts.
type planner struct {
	facts Facts
	spec  nodespec.NodeSpec // resolved
	steps []Step

	unmet               map[nodespec.Need]bool
	certificates        map[string]certificateState // by identity name; empty for the kubelet
	reboot              string                      // reason for a required restart; empty for none
	releases            []nodespec.Release          // that are incomplete
	files               []nodespec.File             // to be written, with their final content
	stops               map[string]string           // running services that must stop, with the reason; lower-case keys
	stopped             bool                        // the plan contains the stop steps
	foreign             bool                        // a foreign agent was stopped before
	stopsHNS            bool                        // the plan stops and restarts the Host Networking Service
	links               []nodespec.Link             // to be created
	unavailableReleases []nodespec.Release          // that cannot be installed now; only for a repair
	held                map[string]bool             // services unchanged because of unavailable releases; lower-case keys
}

func newPlanner(facts Facts, spec nodespec.NodeSpec) *planner {
	m := &planner{facts: facts, spec: Resolve(facts, spec), unmet: map[nodespec.Need]bool{}}
	m.judgeCertificates()
	m.unmet[nodespec.NeedPodSubnet] = spec.Network.PodSubnet == ""
	m.unmet[nodespec.NeedHNSNetwork] = m.networkReason() != ""
	m.unmet[nodespec.NeedSourceVIP] = sourceVIP(facts, spec.Network) == ""
	m.reboot = rebootReason(facts, spec)
	m.releases, m.links = m.incompleteReleases(), m.spec.Links
	m.files = m.differingFiles()
	m.stops = m.servicesToStop()
	m.holdUnnoticedFiles()
	return m
}

func (m *planner) addOperation(operation Operation, reason string, arguments ...any) {
	m.addStep(Step{Operation: operation, Reason: fmt.Sprintf(reason, arguments...)})
}

func (m *planner) addStep(step Step) {
	step.Name = Name(step.Operation)
	m.steps = append(m.steps, step)
}

func (m *planner) buildPlan() Plan {
	m.markSubnetChange()
	return Plan{Steps: m.steps, Needs: m.listUnmetNeeds()}
}

// listUnmetNeeds returns all unmet needs of the spec, in a fixed order.
func (m *planner) listUnmetNeeds() []nodespec.Need {
	wanted := map[nodespec.Need]bool{}
	for _, file := range m.spec.Files {
		for _, need := range file.Needs {
			wanted[need] = true
		}
	}
	for _, service := range m.spec.Services {
		for _, need := range service.Needs {
			wanted[need] = true
		}
	}
	var needs []nodespec.Need
	network := []nodespec.Need{nodespec.NeedPodSubnet, nodespec.NeedHNSNetwork, nodespec.NeedSourceVIP}
	for _, need := range slices.Concat(m.certificateNeeds(), network) {
		if wanted[need] && m.unmet[need] {
			needs = append(needs, need)
		}
	}
	return needs
}

// hasUnmetNeed reports whether any of the needs is unmet.
func (m *planner) hasUnmetNeed(needs []nodespec.Need) bool {
	return slices.ContainsFunc(needs, func(need nodespec.Need) bool { return m.unmet[need] })
}

func accessReason(kind, path string, wanted host.Access) string {
	switch wanted {
	case host.AccessAdministrators:
		return kind + " " + path + " can be accessed by non-administrators"
	case host.AccessReadable:
		return kind + " " + path + " can be changed by non-administrators, or cannot be read by them"
	}
	return kind + " " + path + " does not have the permissions of the folder above it"
}

func isSameAccess(a, b host.Access) bool { return normalAccess(a) == normalAccess(b) }

func normalAccess(access host.Access) host.Access { return cmp.Or(access, host.AccessInherited) }

func (m *planner) setFirewall() {
	for _, rule := range m.spec.Firewall {
		switch fact, there := m.facts.Firewall[rule.Name]; {
		case !there:
			m.addOperation(SetFirewallRule{Rule: rule}, "firewall rule %s does not exist", rule.Name)
		case !isSameRule(fact, rule):
			m.addOperation(SetFirewallRule{Rule: rule}, "firewall rule %s does not allow %s port %d as configured", rule.Name,
				rule.Protocol, rule.LocalPort)
		}
	}
}

func isSameRule(a, b host.FirewallRule) bool {
	a.Name, a.Protocol = strings.ToLower(a.Name), strings.ToUpper(a.Protocol)
	b.Name, b.Protocol = strings.ToLower(b.Name), strings.ToUpper(b.Protocol)
	return a == b
}

func (m *planner) setEnvironment() {
	for _, name := range slices.Sorted(maps.Keys(m.spec.Environment)) {
		value := m.spec.Environment[name]
		switch fact, there := m.facts.Environment[name]; {
		case !there:
			m.addOperation(SetEnvironment{Name: name, Value: value}, "environment variable %s is not set", name)
		case fact != value:
			m.addOperation(SetEnvironment{Name: name, Value: value}, "environment variable %s has another value", name)
		}
	}
}

func (m *planner) enableFeatures() {
	for _, feature := range m.spec.Features {
		switch state := m.facts.Features[feature]; state {
		case host.FeatureEnabled, host.FeatureEnablePending:
		case host.FeatureUnknown, "":
			m.addOperation(EnableFeature{Feature: feature}, "Windows does not list the feature %s as enabled", feature)
		default:
			m.addOperation(EnableFeature{Feature: feature}, "the Windows feature %s is not enabled", feature)
		}
	}
	for _, feature := range m.spec.OptionalFeatures {
		if state := m.facts.Features[feature]; state == host.FeatureDisabled || state == host.FeatureDisablePending {
			m.addOperation(EnableFeature{Feature: feature}, "the Windows feature %s is not enabled", feature)
		}
	}
}

func (m *planner) setHostName() {
	wanted := m.spec.HostName
	if wanted != "" && !strings.EqualFold(nextHostName(m.facts), wanted) {
		m.addOperation(SetHostName{HostName: wanted}, "the host is named %s", nextHostName(m.facts))
	}
}

// nextHostName returns the computer name after the next restart.
func nextHostName(facts Facts) string {
	return cmp.Or(facts.System.PendingHostName, facts.System.HostName)
}

// rebootReason returns the reason why the host must restart before services can be started. Whether a feature
// really requires a restart is known only after the feature was enabled, so the agent plans again before a restart.
func rebootReason(facts Facts, spec nodespec.NodeSpec) string {
	for _, feature := range spec.Features {
		if facts.Features[feature] != host.FeatureEnabled {
			return "the Windows feature " + feature + " takes effect only after a restart"
		}
	}
	for _, feature := range spec.OptionalFeatures {
		if isFeatureKnown(facts.Features[feature]) && facts.Features[feature] != host.FeatureEnabled {
			return "the Windows feature " + feature + " takes effect only after a restart"
		}
	}
	if spec.HostName != "" && (!strings.EqualFold(facts.System.HostName, spec.HostName) ||
		facts.System.PendingHostName != "") {
		return "the computer name " + spec.HostName + " takes effect only after a restart"
	}
	return ""
}

// isFeatureKnown reports whether Windows has a feature.
func isFeatureKnown(state host.FeatureState) bool { return state != host.FeatureUnknown && state != "" }

func (m *planner) addRestart() {
	_, ran := m.facts.Services[nodespec.ServiceKubelet]
	m.addStep(Step{Operation: Reboot{Reason: m.reboot}, Reason: m.reboot, Reboots: true, DisruptsPods: ran})
}
