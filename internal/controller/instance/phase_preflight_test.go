package instance

import (
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/plan"
)

//
func TestPreflight_HostWithoutAPIServerNotChanged(t *testing.T) {
	const url = "https://api-int.lab.example.com:6443"
	unresolved := &plan.APIServerFacts{URL: url, Error: "the name api-int.lab.example.com does not resolve"}
	for name, c := range map[string]struct {
		facts    *plan.APIServerFacts
		messages []string
	}{
		"for want of its name": {unresolved, []string{"does not resolve", "On vSphere"}},
		"because of a firewall, say": {&plan.APIServerFacts{URL: url, Resolved: []string{"10.0.0.2"},
			Error: "no response within 5s"}, []string{"no response", "firewalls"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTrial(t).newScope(machineInstance())
			s.Host.Facts = &plan.Facts{APIServer: c.facts}
			o := checkAPIServerAccess(t.Context(), s)
			if o == nil || o.Reason != v1alpha1.ReasonAPIServerUnreachable || o.Condition != v1alpha1.ConditionPrepared ||
				!o.Outcome.IsFailure() {
				t.Fatalf("%+v", o)
			}
			for _, want := range append(c.messages, url) {
				if !strings.Contains(o.Message+" "+o.NextAction, want) {
					t.Errorf("message %q and next %q do not say %q", o.Message, o.NextAction, want)
				}
			}
			if s.Host.Facts != nil {
				t.Error("the next attempt does not ask the host again")
			}
		})
	}
	for name, facts := range map[string]*plan.APIServerFacts{
		"one that reaches it goes on":        {URL: url, Resolved: []string{"10.0.0.2"}},
		"one that was not asked goes on too": nil,
	} {
		t.Run(name, func(t *testing.T) {
			if o := result.APIServerUnreachable(facts); o != nil {
				t.Errorf("%+v", o)
			}
		})
	}
	t.Run("but a node that has joined is not disturbed by it", func(t *testing.T) {
		instance := machineInstance()
		instance.Status.NodeRef = &v1alpha1.NodeReference{Name: machine, UID: "node-uid", Confirmed: true}
		s := newTrial(t).newScope(instance)
		s.Host.Facts = &plan.Facts{APIServer: unresolved}
		if o := checkAPIServerAccess(t.Context(), s); o != nil {
			t.Errorf("%+v", o)
		}
	})
}
