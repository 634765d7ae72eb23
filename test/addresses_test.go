package test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// questions counts the DNS queries of this process. Hosts are resolved through the lab's network, so a query here
// comes from another path, such as a reverse lookup.
var questions atomic.Int64

func init() {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		questions.Add(1)
		return nil, errors.New("no name server may be asked")
	}}
}

// D-4, L-22
func TestAddresses_HostWithoutPTRRecordBecomesReady(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(1)})
	if names, err := net.DefaultResolver.LookupAddr(t.Context(), r.Host("instance-1").Options.Address); err == nil ||
		questions.Load() == 0 {
		t.Fatalf("a reverse look-up would not be noticed: %v, %v", names, err)
	}
	before := questions.Load()
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	if queries := questions.Load() - before; queries > 0 {
		t.Errorf("name servers were asked %d times", queries)
	}
}

//
func TestAddresses_HostListedByNameConfiguredOnce(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: []testenv.HostOptions{{DNSName: "instance-1.example.com"}}})
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	// A second host keeps the operator busy, so that a retry for the first host would be observed.
	if _, err := r.AddHost(t.Context(), testenv.HostOptions{Name: "instance-2"}); err != nil {
		t.Fatal(err)
	}
	list(t, r)
	waitUntilReady(t, r, "instance-2")

	journal := r.Host("instance-1").Machine().Journal()
	times := map[string]int{}
	for _, entry := range journal.Entries(nil) {
		if entry.Kind == fake.KindFeature || entry.Kind == fake.KindReboot || strings.HasPrefix(entry.Detail, "configure ") {
			times[string(entry.Kind)+" "+entry.Detail]++
		}
	}
	if len(times) < 8 {
		t.Errorf("the journal has only %v", times)
	}
	for what, n := range times {
		if n > 1 {
			t.Errorf("%s: %d times", what, n)
		}
	}
	if n := journal.Count(fake.KindConnection); n > 2 {
		t.Errorf("%d connections", n)
	}
}

// waitForHeartbeat waits until the lease of a node has been renewed once more.
func waitForHeartbeat(t *testing.T, r *testenv.Environment, name string) {
	t.Helper()
	since := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	err := r.WaitFor(ctx, "a heartbeat of "+name, &coordinationv1.Lease{},
		func(ctx context.Context, reader reader) (bool, error) {
			lease := &coordinationv1.Lease{}
			err := reader.Get(ctx, keyOf(corev1.NamespaceNodeLease, name), lease)
			return err == nil && lease.Spec.RenewTime != nil && lease.Spec.RenewTime.After(since), client.IgnoreNotFound(err)
		})
	if err != nil {
		t.Fatal(err)
	}
}

//
func TestAddresses_HostListedByNameSurvivesAddressChange(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: []testenv.HostOptions{{DNSName: "instance-1.example.com"}}})
	h := r.Host("instance-1")
	before := h.Machine().Snapshot()
	first := run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	uid := getNode(t, r, "instance-1").UID

	if err := r.MoveHost(t.Context(), h, testenv.Address(77)); err != nil {
		t.Fatal(err)
	}
	waitForHeartbeat(t, r, "instance-1")
	if got := getNode(t, r, "instance-1").UID; got != uid {
		t.Errorf("the node was made anew: %s, before %s", got, uid)
	}
	waitUntilReady(t, r)

	t.Run("and its node gets the new address, when the operator looks the name up", func(t *testing.T) {
		// The operator resolves names at its start and every ten minutes.
		if err := first.Stop(); err != nil {
			t.Fatal(err)
		}
		run(t, r)
		waitForAddress(t, r, "instance-1", testenv.Address(77))
		waitUntilSchedulable(t, r, "instance-1") // the kubelet has restarted, after a drain
		waitUntilReady(t, r)
		if got := getNode(t, r, "instance-1").UID; got != uid {
			t.Errorf("the node was made anew: %s, before %s", got, uid)
		}
	})
	t.Run("and is found for its removal", func(t *testing.T) {
		if err := r.DeleteInstances(t.Context()); err != nil {
			t.Fatal(err)
		}
		waitUntilDeleted(t, r, "instance-1")
		if diff := cmp.Diff(before, h.Machine().Snapshot()); diff != "" {
			t.Errorf("the host is not as it was (-before +after):\n%s", diff)
		}
	})
}

// waitUntilSchedulable waits until a node is schedulable.
func waitUntilSchedulable(t *testing.T, r *testenv.Environment, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	err := r.WaitFor(ctx, "Node "+name+" to take pods", &corev1.Node{}, func(ctx context.Context, reader reader) (bool,
		error) {
		n := &corev1.Node{}
		err := reader.Get(ctx, keyOf("", name), n)
		return err == nil && !n.Spec.Unschedulable, client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// waitForAddress waits until a Node has an internal address.
func waitForAddress(t *testing.T, r *testenv.Environment, name, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	err := r.WaitFor(ctx, "Node "+name+" to have the address "+address, &corev1.Node{},
		func(ctx context.Context, reader reader) (bool, error) {
			n := &corev1.Node{}
			err := reader.Get(ctx, keyOf("", name), n)
			return err == nil && slices.Contains(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP,
				Address: address}), client.IgnoreNotFound(err)
		})
	if err != nil {
		t.Fatal(err)
	}
}

// the cluster reaches only one of the host's two network cards, and a virtual adapter for pods registers in
// DNS.
func TestAddresses_UnreachableAddressesOfNameSkipped(t *testing.T) {
	const name = "instance-1.example.com"
	network := winhost.NewNetwork()
	r := newInstalledRig(t, testenv.Options{Network: network, Hosts: []testenv.HostOptions{{DNSName: name}}})
	inPodNetwork, silent := "10.132.0.2", testenv.Address(90)
	for _, address := range []string{inPodNetwork, silent} {
		listener, err := network.Listen(address, 22)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
	}
	t.Cleanup(network.Unplug(silent))
	network.SetName(name, inPodNetwork, silent, r.Host("instance-1").Options.Address)
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	if instance, err := r.Instance(t.Context(), "instance-1"); err != nil {
		t.Fatal(err)
	} else if at := instance.Status.Host.LastReachedAddress; at != r.Host("instance-1").Options.Address {
		t.Errorf("the host was reached at %q", at)
	}
}

// the next change of any kind must not assign another address to a node in service, and another serving
// certificate to its kubelet.
func TestAddresses_NodeAddressKeptAfterReordering(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: []testenv.HostOptions{{MoreAddresses: []string{testenv.Address(91)}}}})
	h := r.Host("instance-1")
	first := run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	before := getNode(t, r, "instance-1").Status.Addresses

	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	h.Machine().PowerOff()
	if err := h.Machine().Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	changed, err := r.RunOperator(func(c *operator.Config) { c.Debug = true })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = changed.Stop() })
	instance, err := r.Instance(t.Context(), "instance-1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	digest, reported := instance.Status.SpecDigest, instance.Status.Host.Addresses
	err = r.WaitFor(ctx, "the node to have the changed setting", instance, func(ctx context.Context, reader reader) (bool, error) {
		err := reader.Get(ctx, client.ObjectKeyFromObject(instance), instance)
		return err == nil && instance.Status.SpecDigest != "" && instance.Status.SpecDigest != digest, err
	})
	if err != nil {
		t.Fatal(err)
	}
	waitUntilReady(t, r)
	if slices.Equal(reported, instance.Status.Host.Addresses) {
		t.Fatalf("the host reports %v: the order has not changed", reported)
	}
	if diff := cmp.Diff(before, getNode(t, r, "instance-1").Status.Addresses); diff != "" {
		t.Errorf("the node has other addresses (-before +after):\n%s", diff)
	}
}

//
func TestAddresses_NewListedAddressAdoptsNode(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: []testenv.HostOptions{{}}})
	h := r.Host("instance-1")
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	old, err := r.Instance(t.Context(), "instance-1")
	if err != nil {
		t.Fatal(err)
	}

	if err := r.MoveHost(t.Context(), h, testenv.Address(77)); err != nil {
		t.Fatal(err)
	}
	list(t, r) // the new address replaces the previous one
	waitUntilReady(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	err = r.WaitFor(ctx, "the old instance to be gone", old, func(ctx context.Context, reader reader) (bool, error) {
		var list v1alpha1.WindowsInstanceList
		err := reader.List(ctx, &list)
		return !slices.ContainsFunc(list.Items, func(i v1alpha1.WindowsInstance) bool { return i.Name == old.Name }), err
	})
	if err != nil {
		t.Fatal(err)
	}
	n := getNode(t, r, "instance-1")
	if n.Spec.Unschedulable {
		t.Error("the node takes no pods")
	}
	if !slices.ContainsFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool {
		return a.Type == corev1.NodeInternalIP && a.Address == testenv.Address(77)
	}) {
		t.Errorf("the node's addresses are %v", n.Status.Addresses)
	}
}

//
func TestAddresses_UnresolvedNameReported(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: []testenv.HostOptions{{DNSName: "instance-1.example.com"}}})
	network := r.Network()
	network.SetName("instance-1.example.com")
	run(t, r)
	list(t, r)
	instance := waitForReason(t, r, "instance-1", "NameNotResolved")
	if status := testenv.Explain(instance); !strings.Contains(status, "instance-1.example.com") {
		t.Errorf("the status does not name it:\n%s", status)
	}
	network.SetName("instance-1.example.com", r.Host("instance-1").Options.Address)
	waitUntilReady(t, r)
}
