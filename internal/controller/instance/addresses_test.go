package instance

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

//
func TestHasMoved_ComparesDNSWithLastReachedAddress(t *testing.T) {
	leadsTo := func(addresses ...string) func(context.Context, string) ([]string, error) {
		return func(context.Context, string) ([]string, error) { return addresses, nil }
	}
	for name, c := range map[string]struct {
		address, lastReachedAddress string
		lookup                      func(context.Context, string) ([]string, error)
		want                        bool
	}{
		"its name leads elsewhere":       {"win.example.com", "10.0.0.8", leadsTo("10.0.0.9"), true},
		"not while its name leads to it": {"win.example.com", "10.0.0.8", leadsTo("10.0.0.9", "10.0.0.8"), false},
		"not while its name leads to it and to the pods' network, whichever comes first": {"win.example.com", "10.0.0.8",
			leadsTo("10.132.0.2", "10.0.0.8"), false},
		"its name leads elsewhere and to the pods' network":    {"win.example.com", "10.0.0.8", leadsTo("10.132.0.2", "10.0.0.9"), true},
		"its name has only an address that cannot be a host's": {"win.example.com", "10.0.0.8", leadsTo("10.132.0.2"), true},
		"it was reached at an address that the cluster has now": {"win.example.com", "10.132.0.2",
			leadsTo("10.132.0.2", "10.0.0.8"), true},
		"not while its name leads nowhere":    {"win.example.com", "10.0.0.8", leadsTo(), false},
		"not while it was never reached":      {"win.example.com", "", leadsTo("10.0.0.9"), false},
		"its Machine has another address":     {"10.0.0.9", "10.0.0.8", nil, true},
		"not while its Machine has the same":  {"10.0.0.8", "10.0.0.8", nil, false},
		"not where names cannot be looked up": {"win.example.com", "10.0.0.8", nil, false},
		"not while the name server does not answer": {"win.example.com", "10.0.0.8",
			func(context.Context, string) ([]string, error) { return nil, errors.New("timeout") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			instance := listedInstance()
			instance.Spec.Address = c.address
			instance.Status.Host = &v1alpha1.HostStatus{LastReachedAddress: c.lastReachedAddress}
			x := newTrial(t, instance)
			s := x.newScope(instance)
			s.Cluster = *supportedCluster()
			got := false
			x.runPhase(s, func(context.Context, *scope.Scope) (pending *result.Result) {
				got, pending = (addressWatcher{lookUp: c.lookup}).hasMoved(s)
				return pending
			})
			if got != c.want {
				t.Errorf("it is %t", got)
			}
		})
	}
}

// The kubelet of a host with a new address still reports Ready. R-077
func TestHasMoved_NewDNSAddressTriggersFacts(t *testing.T) {
	x, h, _ := nodeInService(t, "None", func(o *fake.Options) {})
	x.changeSpec(x.getInstance(), func(i *v1alpha1.WindowsInstance) { i.Spec.Address = "win.example.com" })
	leads := x.getInstance().Status.Host.LastReachedAddress
	if leads == "" {
		t.Fatal("nobody knows where the host was reached")
	}
	x.LookUp = func(context.Context, string) ([]string, error) { return []string{leads}, nil }
	execs := len(h.agentCommands())
	_, after := x.reconcile()
	if len(h.agentCommands()) != execs || after < dnsRecheckInterval {
		t.Fatalf("run were %q, the next look is after %s", h.agentCommands()[execs:], after)
	}
	leads = "10.0.128.99"
	x.clock.Step(after)
	instance, _ := x.reconcile()
	if !slices.Contains(h.agentCommands()[execs:], "facts") {
		t.Errorf("the host was not asked: %q, %s", h.agentCommands()[execs:], instance.Status.Summary)
	}
}

func TestHasMoved_UnreachableNewAddressKeepsNodeReady(t *testing.T) {
	x := newTrial(t)
	instance := listedInstance()
	instance.Spec.Address = "win.example.com"
	x.asNode(instance, x.key.Hash())
	x.changeStatus(func(status *v1alpha1.WindowsInstanceStatus) { status.Host.LastReachedAddress = "10.0.128.7" })
	x.LookUp = func(context.Context, string) ([]string, error) { return []string{"10.0.128.99"}, nil }
	x.server = func(context.Context) (net.Conn, error) { return nil, errors.New("no route to host") }
	instance, after := x.reconcile()
	expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, "Unreachable")
	if after == 0 || after > time.Minute {
		t.Errorf("the next look is after %s", after)
	}
}
