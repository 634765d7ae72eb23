package instance

import (
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/plan"
)

//
func TestAHostThatCannotReachTheAPIServerIsNotChanged(t *testing.T) {
	const url = "https://api-int.lab.example.com:6443"
	unresolved := &plan.APIServerFacts{URL: url, Error: "the name api-int.lab.example.com does not resolve"}
	for name, c := range map[string]struct {
		facts *plan.APIServerFacts
		says  []string
	}{
		"for want of its name":       {unresolved, []string{"does not resolve", "On vSphere"}},
		"because of a firewall, say": {&plan.APIServerFacts{URL: url, Resolved: []string{"10.0.0.2"}, Error: "no answer within 5 s"}, []string{"no answer", "firewalls"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTrial(t).newScope(ofMachine())
			s.session.facts = &plan.Facts{APIServer: c.facts}
			o := s.checkWayToAPIServer(t.Context(), s)
			if o == nil || o.reason != v1alpha1.ReasonAPIServerUnreachable || o.condition != v1alpha1.ConditionPrepared || !o.outcome.isFailure() {
				t.Fatalf("%+v", o)
			}
			for _, want := range append(c.says, url) {
				if !strings.Contains(o.message+" "+o.next, want) {
					t.Errorf("message %q and next %q do not say %q", o.message, o.next, want)
				}
			}
			if s.session.facts != nil {
				t.Error("the next attempt does not ask the host again")
			}
		})
	}
	for name, facts := range map[string]*plan.APIServerFacts{
		"one that reaches it goes on":        {URL: url, Resolved: []string{"10.0.0.2"}},
		"one that was not asked goes on too": nil,
	} {
		t.Run(name, func(t *testing.T) {
			if o := wayToAPIServer(facts); o != nil {
				t.Errorf("%+v", o)
			}
		})
	}
	t.Run("but a node that has joined is not disturbed by it", func(t *testing.T) {
		instance := ofMachine()
		instance.Status.NodeRef = &v1alpha1.NodeReference{Name: machine, UID: "node-uid", Confirmed: true}
		s := newTrial(t).newScope(instance)
		s.session.facts = &plan.Facts{APIServer: unresolved}
		if o := s.checkWayToAPIServer(t.Context(), s); o != nil {
			t.Errorf("%+v", o)
		}
	})
}

//
func TestTheHostIsAskedToTryTheAddressOfTheAPIServer(t *testing.T) {
	for url, want := range map[string][]string{
		"https://api-int.lab.example.com:6443": {"--api-server", "https://api-int.lab.example.com:6443"},
		"https://api-int.lab.example.com":      {"--api-server", "https://api-int.lab.example.com:443"},
		"https://10.0.0.2:6443/":               {"--api-server", "https://10.0.0.2:6443"},
		"https://[fd02::1]:6443":               nil, // no plain word for a shell
		"":                                     nil, // a removal does not read the cluster
	} {
		s := &scope{}
		s.cluster.APIServerInternalURL = url
		if got := s.factsArguments(); !slices.Equal(got, want) {
			t.Errorf("of %q: %q", url, got)
		}
	}
}
