package plan_test

import (
	"slices"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// pods have addresses of the node's pod subnet, so a node with a new subnet is drained.
func TestMake_NewPodSubnetDisruptsPods(t *testing.T) {
	before, after := clusterInputs(), clusterInputs()
	after.PodSubnet = "10.132.9.0/24"
	isDisruptive := func(p plan.Plan) bool {
		return slices.ContainsFunc(p.Steps, func(step plan.Step) bool { return step.DisruptsPods })
	}
	recreated := func(m *model) { // by hybrid-overlay-node
		m.subnet = after.PodSubnet
		m.Networks, m.Endpoints = []host.HNSNetwork{{Name: m.network, Type: "Overlay", Subnet: after.PodSubnet}}, nil
	}
	for name, meanwhile := range map[string]func(m *model){
		"before the network has it":                                  func(*model) {},
		"when hybrid-overlay-node has made the network anew already": recreated,
	} {
		t.Run(name, func(t *testing.T) {
			m := newAppliedModel(t, makeSpec(t, before))
			m.PodSubnet = before.PodSubnet
			m.Ledger = plan.Record(m.Facts, makeSpec(t, after))
			meanwhile(m)
			if p := plan.Make(m.Facts, makeSpec(t, after)); !isDisruptive(p) {
				t.Errorf("no pod feels\n%s", formatPlan(p))
			}
			// The agent's service, which has the former spec, leaves the change to the operator.
			if p := plan.Make(m.Facts, makeSpec(t, before)); isDisruptive(p) {
				t.Errorf("of its own accord pods feel\n%s", formatPlan(p))
			}
			recreated(m)
			m.PodSubnet = after.PodSubnet
			convergeModel(t, m, makeSpec(t, after), -1)
			if p := plan.Make(m.Facts, makeSpec(t, after)); len(p.Steps) != 0 {
				t.Errorf("left to do: %s", formatPlan(p))
			}
		})
	}
	t.Run("the same network that is made anew is not", func(t *testing.T) {
		m := newAppliedModel(t, makeSpec(t, before))
		m.PodSubnet, m.Networks, m.Endpoints = before.PodSubnet, nil, nil
		if p := plan.Make(m.Facts, makeSpec(t, before)); len(p.Steps) == 0 || isDisruptive(p) {
			t.Errorf("pods feel\n%s", formatPlan(p))
		}
	})
}
