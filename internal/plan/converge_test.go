package plan_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// fataler is implemented by tests and property tests.
type fataler interface {
	Helper()
	Fatalf(format string, arguments ...any)
}

// operator applies a spec to a model like agent and operator together, and checks each step.
type operator struct {
	t    fataler
	m    *model
	spec nodespec.NodeSpec
	// kill is the number of steps before the agent is killed once; -1: never.
	kill  int
	steps []plan.Step
}

func convergeModel(t fataler, m *model, spec nodespec.NodeSpec, kill int) []plan.Step {
	t.Helper()
	o := &operator{t: t, m: m, spec: spec, kill: kill}
	m.Ledger = plan.Record(m.Facts, spec)
	for _, service := range spec.Services {
		m.disruptive[service.Name] = m.disruptive[service.Name] || service.DisruptsPods
		m.reads[service.Name] = service.RestartOn
	}
	for range 20 {
		p := plan.Make(m.Facts, o.spec)
		if len(p.Steps) == 0 && len(p.Needs) == 0 {
			m.Ledger = plan.Prune(m.Facts, o.spec)
			return o.steps
		}
		if len(p.Steps) == 0 {
			o.satisfyNeeds(p.Needs)
			continue
		}
		o.executeSteps(p.Steps)
	}
	t.Fatalf("no end: %v", namesOfSteps(o.steps[max(0, len(o.steps)-12):]))
	return nil
}

func restoreModel(t fataler, m *model, kill int) []plan.Step {
	t.Helper()
	o := &operator{t: t, m: m, kill: kill}
	for range 10 {
		p := plan.Remove(m.Facts)
		if len(p.Steps) == 0 {
			return o.steps
		}
		o.executeSteps(p.Steps)
	}
	t.Fatalf("no end: %v", namesOfSteps(o.steps[max(0, len(o.steps)-12):]))
	return nil
}

func (o *operator) satisfyNeeds(needs []nodespec.Need) {
	switch needs[0] {
	case nodespec.NeedCertificate:
		if o.m.unread != nil {
			o.m.Identity.Current, o.m.unread = o.m.unread, nil
			return
		}
		o.spec.Identity.Certificate = nodeCertificate()
	case nodespec.NeedPodSubnet:
		o.spec.Network.PodSubnet, o.m.subnet = "10.132.1.0/24", "10.132.1.0/24"
		if o.m.Services[o.m.overlay].RunningCommandLine != "" {
			o.m.stop(o.m.overlay)
			o.m.start(o.m.overlay)
		}
	default:
		o.t.Fatalf("the agent needs %v from the operator", needs)
	}
}

func (o *operator) executeSteps(steps []plan.Step) {
	for i, step := range steps {
		if o.kill == 0 {
			o.kill = -1
			if o.m.blackout {
				o.m.rebootHost()
			}
			return
		}
		o.kill--
		if step.Reboots && i != len(steps)-1 {
			o.t.Fatalf("%s is not the last step", step.Name)
		}
		if step.Reason == "" || step.Name != plan.Name(step.Operation) {
			o.t.Fatalf("step %+v", step)
		}
		checkKubeletGuard(o.t, o.m, o.spec, step)
		o.m.applyStep(step)
		if o.m.disrupted && !step.DisruptsPods {
			o.t.Fatalf("%s disturbs pods without saying so", step.Name)
		}
		if await, ok := step.Operation.(plan.AwaitNetwork); ok && !slices.ContainsFunc(o.m.Networks,
			func(n host.HNSNetwork) bool {
				return n.Name == await.Network
			}) {
			o.t.Fatalf("nothing makes the network that is waited for")
		}
		o.steps = append(o.steps, step)
	}
}

// checkKubeletGuard checks the host before a step: the kubelet must not start while the plugin is configured and the
// pod network is missing.
func checkKubeletGuard(t fataler, m *model, spec nodespec.NodeSpec, step plan.Step) {
	t.Helper()
	if slices.ContainsFunc(m.Networks, func(n host.HNSNetwork) bool {
		return n.Name == m.network && n.Subnet == m.subnet
	}) {
		return
	}
	if _, writes := step.Operation.(plan.WriteFile); writes && plan.IsForNetwork(step, spec) {
		t.Fatalf("%s without the network", step.Name)
	}
	for _, file := range spec.Files {
		_, exists := m.Files[file.Path]
		if exists && step.Name == "StartService kubelet" && slices.Contains(file.Needs, nodespec.NeedHNSNetwork) {
			t.Fatalf("%s without the network, and %s is there", step.Name, file.Path)
		}
	}
}

func namesOfSteps(steps []plan.Step) []string {
	var result []string
	for _, step := range steps {
		result = append(result, step.Name)
	}
	return result
}

// formatPlan formats a plan for a golden file.
func formatPlan(p plan.Plan) string {
	var b strings.Builder
	for _, step := range p.Steps {
		marks := ""
		if step.DisruptsPods {
			marks += " [disturbs pods]"
		}
		if step.Reboots {
			marks += " [reboots]"
		}
		fmt.Fprintf(&b, "%s%s\n    %s\n", step.Name, marks, step.Reason)
	}
	for _, need := range p.Needs {
		fmt.Fprintf(&b, "needs %s\n", need)
	}
	return b.String()
}
