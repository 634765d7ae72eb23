package test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// Two hosts that are listed by address swap their addresses, as reassigned DHCP leases do. R-077
func TestAddressSwap_ReportedForBothHosts(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(3)})
	hosts := []*testenv.Host{r.Host("instance-1"), r.Host("instance-3")} // the other host is listed by its name
	first, second := hosts[0].Options.Address, hosts[1].Options.Address
	run(t, r)
	list(t, r, "instance-1", "instance-3")
	waitUntilReady(t, r, "instance-1", "instance-3")
	uids := []string{string(getNode(t, r, "instance-1").UID), string(getNode(t, r, "instance-3").UID)}
	swap := func() {
		t.Helper()
		swapAddresses(t, r, hosts[0], hosts[1])
	}
	swap()
	for name, addresses := range map[string][2]string{"instance-1": {first, second}, "instance-3": {second, first}} {
		t.Run(name+" says which address it has lost, and which one it has", func(t *testing.T) {
			waitForConfiguration(t, r, name, corev1.ConditionFalse, "no longer has "+addresses[0]+" but "+addresses[1])
			if !waitForEvent(t, r, "DriftNotRepaired", "no longer has "+addresses[0]) {
				t.Error("no event says so")
			}
		})
	}
	t.Run("both get well when the addresses are as they were, and stay the same nodes", func(t *testing.T) {
		swap()
		for i, name := range []string{"instance-1", "instance-3"} {
			waitForConfiguration(t, r, name, corev1.ConditionTrue, "")
			if got := string(getNode(t, r, name).UID); got != uids[i] {
				t.Errorf("Node %s was made anew: %s, before %s", name, got, uids[i])
			}
		}
		waitUntilReady(t, r, "instance-1", "instance-3")
	})
}

// swapAddresses assigns the addresses of two hosts to each other.
func swapAddresses(t *testing.T, r *testenv.Environment, a, b *testenv.Host) {
	t.Helper()
	first, second := a.Options.Address, b.Options.Address
	requireNoError(t, r.MoveHost(t.Context(), a, testenv.Address(77)))
	requireNoError(t, r.MoveHost(t.Context(), b, first))
	requireNoError(t, r.MoveHost(t.Context(), a, second))
}

//
func TestAddressSwap_HostOfAnotherNodeNotRestored(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(3)})
	own, other := r.Host("instance-1"), r.Host("instance-3")
	before := own.Machine().Snapshot()
	run(t, r)
	list(t, r, "instance-1", "instance-3")
	waitUntilReady(t, r, "instance-1", "instance-3")
	address := own.Options.Address
	ownInstance, err := r.Instance(t.Context(), "instance-1")
	requireNoError(t, err)
	otherInstance, err := r.Instance(t.Context(), "instance-3")
	requireNoError(t, err)
	uid := getNode(t, r, "instance-3").UID

	swapAddresses(t, r, own, other)
	setAnnotation(t, r, ownInstance, v1alpha1.AnnotationAcceptHostKey, otherInstance.Status.HostKey.Fingerprint)
	setAnnotation(t, r, otherInstance, v1alpha1.AnnotationAcceptHostKey, ownInstance.Status.HostKey.Fingerprint)
	list(t, r, "instance-1") // the new address: the previous entry is removed
	if !waitForSummary(t, r, address, "HostKeyChanged") {
		t.Fatal("the host of another node was reached")
	}
	requireNoError(t, r.Client.Get(t.Context(), keyOf(ownInstance.Namespace, ownInstance.Name), ownInstance))
	reachable := meta.FindStatusCondition(ownInstance.Status.Conditions, v1alpha1.ConditionReachable)
	if wanted := "of WindowsInstance " + otherInstance.Name; !strings.Contains(reachable.Message, wanted) ||
		!strings.Contains(ownInstance.Status.NextAction, "Restore the addresses of the hosts") {
		t.Errorf("the message lacks %q: %s %s", wanted, reachable.Message, ownInstance.Status.NextAction)
	}
	if n := getNode(t, r, "instance-3"); n.UID != uid || n.Spec.Unschedulable {
		t.Errorf("the other node was disturbed: %+v", n.Spec)
	}
	for _, command := range other.Machine().Journal().Entries(func(e fake.Entry) bool { return e.Kind == winhost.KindCommand }) {
		if strings.Contains(command.Detail, " remove") {
			t.Errorf("the other host was restored: %s", command.Detail)
		}
	}
	getNode(t, r, "instance-1")

	swapAddresses(t, r, own, other)
	list(t, r, "instance-3")
	waitUntilDeleted(t, r, "instance-1")
	if diff := cmp.Diff(before, own.Machine().Snapshot()); diff != "" {
		t.Errorf("the host is not as it was (-before +after):\n%s", diff)
	}
	checkNothingLeft(t, r, "instance-1")
	waitUntilReady(t, r, "instance-3")
	if getNode(t, r, "instance-3").UID != uid {
		t.Error("the other node was registered again")
	}
}

// waitForConfiguration waits until the agent has written its condition with the status and the text.
func waitForConfiguration(t *testing.T, r *testenv.Environment, name string, status corev1.ConditionStatus, text string) {
	t.Helper()
	var found corev1.NodeCondition
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	err := r.WaitFor(ctx, "Node "+name+" to have "+nodespec.ConditionConfiguration+" "+string(status), &corev1.Node{},
		func(ctx context.Context, reader reader) (bool, error) {
			n := &corev1.Node{}
			err := reader.Get(ctx, keyOf("", name), n)
			i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == nodespec.ConditionConfiguration
			})
			if err != nil || i < 0 {
				return false, err
			}
			found = n.Status.Conditions[i]
			return found.Status == status && strings.Contains(found.Message, text), nil
		})
	if err != nil {
		t.Fatalf("%v; the condition is %+v", err, found)
	}
}
