package instance

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

var (
	// Before the pod network exists, the host is in a private network.
	excludesLocalRules = fake.GroupPolicy{Void: host.Profiles(), Rules: []host.FirewallRule{
		{Name: "SSH", Protocol: "TCP", LocalPort: 22, Enabled: true, Allow: true, Profiles: host.ProfilePrivate},
	}}
	allowsNodes = fake.GroupPolicy{Void: host.Profiles(), Rules: []host.FirewallRule{
		{Name: "SSH", Protocol: "TCP", LocalPort: 22, Enabled: true, Allow: true},
		{Name: "node", Protocol: "TCP", LocalPort: 10250, Enabled: true, Allow: true},
	}}
)

func TestFirewallPolicy_HostWithoutSSHRuleNotChanged(t *testing.T) {
	x, h, _ := hostToJoin(t, "None", func(o *fake.Options) { o.GroupPolicy = excludesLocalRules })
	instance := x.reconcileUntil("a reason", hasSummary(v1alpha1.ReasonFirewallPolicyUnsupported))
	supported := expectCondition(t, instance, v1alpha1.ConditionSupported, metav1.ConditionFalse, v1alpha1.ReasonFirewallPolicyUnsupported)
	if want := "in the profile Domain and Public:"; !strings.Contains(supported.Message, want) {
		t.Errorf("%s is not in the message: %s", want, supported.Message)
	}
	if !strings.Contains(instance.Status.NextAction, "TCP 22") {
		t.Errorf("the rule to add is not in %q", instance.Status.NextAction)
	}
	if verbs := slices.Compact(h.agentCommands()); !slices.Equal(verbs, []string{"facts"}) || x.countRequests() > 0 {
		t.Errorf("the agent ran %q, with %d certificate requests", verbs, x.countRequests())
	}
	if _, exists := h.machine.Service(nodespec.ServiceAgent); exists {
		t.Error("the agent is installed")
	}
	h.machine.SetGroupPolicy(allowsNodes)
	x.clock.Step(10 * time.Minute)
	x.joinNode()
	if !h.machine.IsPortAllowed(22) {
		t.Error("the host is cut off")
	}

	h.machine.SetGroupPolicy(excludesLocalRules)
	x.facts.ServiceCIDRs = []string{"172.31.0.0/16"} // another configuration
	x.reconcile()
	expectCondition(t, x.getInstance(), v1alpha1.ConditionSupported, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
}

func TestFirewallPolicy_LegacyNodeNotChecked(t *testing.T) {
	const name = "winworker-x2k4f"
	x, h, _ := legacyTrial(t, "None", name, legacyNode(name, dialed))
	h.machine.SetGroupPolicy(excludesLocalRules)
	instance := x.reconcileUntil("the adopted node to wait for its slot", hasSummary(v1alpha1.ReasonMaxUnavailableReached))
	if ref := instance.Status.NodeRef; ref == nil || ref.Name != name {
		t.Errorf("it has %+v: %s", ref, instance.Status.NextAction)
	}
}
