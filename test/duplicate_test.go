package test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/source/byoh"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/internal/policy/hostlist"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// An entry may be deleted after the operator has pinned the host key and before it has read the identity of the
// host.
func TestDuplicate_RemovedAddressBeforeIdentityKeepsHost(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: []testenv.HostOptions{{DNSName: "instance-1.example.com"}}})
	operator := run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	entries := r.Entries()
	second := r.Host("instance-1").Options.Address
	entries[second] = "username=Administrator"
	if err := r.SetInstances(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
	if !waitForSummary(t, r, second, v1alpha1.ReasonDuplicateHost) {
		t.Fatal("the second address is not reported")
	}
	if err := operator.Stop(); err != nil {
		t.Fatal(err)
	}
	duplicate := &v1alpha1.WindowsInstance{}
	if err := r.Client.Get(t.Context(), keyOf(r.Namespace(), hostlist.InstanceName(second)), duplicate); err != nil {
		t.Fatal(err)
	}
	early := duplicate.DeepCopy()
	early.Status.Host = nil
	if err := r.Client.Status().Patch(t.Context(), early, client.MergeFrom(duplicate)); err != nil {
		t.Fatal(err)
	}
	before, uid := r.Host("instance-1").Machine().Snapshot(), getNode(t, r, "instance-1").UID

	list(t, r)
	run(t, r)
	if !waitForEvent(t, r, "HostShared", "instance-1") {
		t.Error("no event says that the host stays")
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	err := r.WaitFor(ctx, "the second instance to be gone", duplicate,
		func(ctx context.Context, reader reader) (bool, error) {
			err := reader.Get(ctx, client.ObjectKeyFromObject(duplicate), &v1alpha1.WindowsInstance{})
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
	if err != nil {
		t.Fatal(err)
	}
	waitUntilReady(t, r)
	if got := getNode(t, r, "instance-1"); got.UID != uid || got.Spec.Unschedulable {
		t.Errorf("the node was touched: %+v", got.Spec)
	}
	if diff := cmp.Diff(before, r.Host("instance-1").Machine().Snapshot()); diff != "" {
		t.Errorf("the host is not as it was (-before +after):\n%s", diff)
	}
}

// Each entry is marked for removal separately, and the removal starts immediately.
func TestDuplicate_DeletedListLeavesNothingBehind(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: []testenv.HostOptions{{DNSName: "instance-1.example.com"},
		{DNSName: "instance-2.example.com"}}})
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	twice := r.Entries()
	for _, h := range r.Hosts() {
		twice[h.Options.Address] = "username=Administrator"
	}
	requireNoError(t, r.SetInstances(t.Context(), twice))
	for _, h := range r.Hosts() {
		if !waitForSummary(t, r, h.Options.Address, v1alpha1.ReasonDuplicateHost) {
			t.Fatalf("the second address of %s is not reported", h.Options.Name)
		}
	}
	requireNoError(t, r.DeleteInstances(t.Context()))
	waitUntil(t, "the instances are gone", func(ctx context.Context) (bool, error) {
		var instances v1alpha1.WindowsInstanceList
		err := r.Client.List(ctx, &instances)
		return len(instances.Items) == 0, err
	})
	for _, h := range r.Hosts() {
		checkNothingLeft(t, r, h.Options.Name)
		for path := range h.Machine().Snapshot().Files {
			if strings.HasPrefix(path, `C:\k\`) {
				t.Errorf("%s is left on %s", path, h.Options.Name)
			}
		}
	}
	list(t, r)
	waitUntilReady(t, r)
}

// The command oc replace --force deletes and recreates the ConfigMap. The operator runs with the same grace period as
// in a cluster.
//
func TestDuplicate_ForcedListReplacementKeepsNode(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(1)})
	if _, err := r.RunOperator(func(c *operator.Config) { c.RemovalDelays = byoh.RemovalDelays{} }); err != nil {
		t.Fatal(err)
	}
	list(t, r)
	waitUntilReady(t, r)
	uid := getNode(t, r, "instance-1").UID
	requireNoError(t, r.DeleteInstances(t.Context()))
	entries := r.Entries()
	entries["10.9.0.200"] = "user=core" // shows that the list was read again
	requireNoError(t, r.SetInstances(t.Context(), entries))
	if !waitForEvent(t, r, "InvalidEntry", "10.9.0.200") {
		t.Fatal("the list was not read again")
	}
	waitUntilReady(t, r)
	if got := getNode(t, r, "instance-1"); got.UID != uid || got.Spec.Unschedulable {
		t.Errorf("the node was touched: %+v", got.Spec)
	}
	var instances v1alpha1.WindowsInstanceList
	requireNoError(t, r.Client.List(t.Context(), &instances))
	for _, instance := range instances.Items {
		if instance.Spec.DesiredState != v1alpha1.DesiredStateNode {
			t.Errorf("%s is to be %s", instance.Name, instance.Spec.DesiredState)
		}
	}
}
