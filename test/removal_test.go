package test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// waitUntilDeleted waits until the instance of a host no longer exists.
func waitUntilDeleted(t *testing.T, r *testenv.Environment, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	if err := r.WaitGone(ctx, name); err != nil {
		t.Fatal(err)
	}
}

// checkNothingLeft checks that no object of a node is left in the cluster.
func checkNothingLeft(t *testing.T, r *testenv.Environment, name string) {
	t.Helper()
	if err := r.Client.Get(t.Context(), keyOf("", name), &corev1.Node{}); !apierrors.IsNotFound(err) {
		t.Errorf("Node %s is still there (%v)", name, err)
	}
	var requests certificatesv1.CertificateSigningRequestList
	if err := r.Client.List(t.Context(), &requests); err != nil {
		t.Fatal(err)
	}
	for _, request := range requests.Items {
		itself := request.Spec.Username == "system:node:"+name
		if strings.Contains(request.Name, name) || itself && len(request.Status.Conditions) == 0 {
			t.Errorf("CertificateSigningRequest %s of %s is left", request.Name, request.Spec.Username)
		}
	}
}

//
func TestStoryARemovedEntryGivesTheHostBackAsItWas(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(2)})
	machine := r.Host("instance-1").Machine()
	before := machine.Snapshot()
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	for _, log := range []string{`kube-proxy\kube-proxy.log`, `hybrid-overlay\hybrid-overlay.log`, `kubelet\kubelet.log`,
		`containerd\containerd.log`, `wicd\windows-instance-config-daemon.exe.INFO`, `csi-proxy\csi-proxy.log`} {
		if _, err := machine.Drive().Stat(`C:\var\log\` + log); err != nil {
			t.Errorf("OpenShift's must-gather finds no log: %v", err)
		}
	}

	list(t, r, "instance-2")
	waitUntilDeleted(t, r, "instance-1")
	if diff := cmp.Diff(before, machine.Snapshot()); diff != "" {
		t.Errorf("the host is not as it was (-before +after):\n%s", diff)
	}
	checkNothingLeft(t, r, "instance-1")
	if instance, err := r.Instance(t.Context(), "instance-2"); err != nil || !testenv.IsReady(instance) {
		t.Errorf("the other host is no longer Ready (%v)", err)
	}

	t.Run("and the events of the previous operator are about the ConfigMap", func(t *testing.T) {
		for _, reason := range []string{"InstanceSetup", "InstanceTeardown"} {
			ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
			defer cancel()
			requireNoError(t, r.WaitFor(ctx, "the event "+reason, &eventsv1.Event{}, func(ctx context.Context, reader client.Reader) (bool, error) {
				var list eventsv1.EventList
				err := reader.List(ctx, &list, client.InNamespace(r.Namespace()))
				return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
					return e.Reason == reason && e.Regarding.Kind == "ConfigMap" && e.Regarding.Name == "windows-instances" &&
						e.Related != nil && e.Related.Kind == "WindowsInstance"
				}), err
			}))
		}
	})
	t.Run("and it can become a node again", func(t *testing.T) {
		list(t, r)
		waitUntilReady(t, r, "instance-1")
	})
}

//
func TestRemoval_DeletedConfigMapRemovesAllHosts(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(3)})
	before := map[string]fake.Snapshot{}
	for _, h := range r.Hosts() {
		before[h.Options.Name] = h.Machine().Snapshot()
	}
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	if err := r.DeleteInstances(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, h := range r.Hosts() {
		waitUntilDeleted(t, r, h.Options.Name)
		if diff := cmp.Diff(before[h.Options.Name], h.Machine().Snapshot()); diff != "" {
			t.Errorf("host %s is not as it was (-before +after):\n%s", h.Options.Name, diff)
		}
		checkNothingLeft(t, r, h.Options.Name)
	}
}

//
func TestRemoval_DeadHostForgottenOnRequest(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(1)})
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	r.Host("instance-1").Machine().PowerOff()
	if err := r.DeleteInstances(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	err := r.WaitForInstance(ctx, r.Host("instance-1"), "to say how to go on without the host",
		func(i *v1alpha1.WindowsInstance) bool {
			return i != nil && strings.Contains(i.Status.NextAction, v1alpha1.AnnotationForgetHost)
		})
	if err != nil {
		t.Fatal(err)
	}
	getNode(t, r, "instance-1") // kept until an administrator decides

	instance, err := r.Instance(t.Context(), "instance-1")
	if err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"`+v1alpha1.AnnotationForgetHost+`":"true"}}}`))
	if err := r.Client.Patch(t.Context(), instance, patch); err != nil {
		t.Fatal(err)
	}
	waitUntilDeleted(t, r, "instance-1")
	checkNothingLeft(t, r, "instance-1")
	if !waitForEvent(t, r, "HostNotCleanedUp", "Containers feature") {
		t.Error("no event says what was left behind")
	}
}

//
func TestRemoval_RejectedKeyKeepsNode(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(1)})
	before := r.Host("instance-1").Machine().Snapshot()
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	restore := r.Host("instance-1").Inject(winhost.RejectKey, winhost.Parameters{})
	if err := r.DeleteInstances(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitForReason(t, r, "instance-1", "AuthenticationFailed")
	getNode(t, r, "instance-1")
	restore()
	waitUntilDeleted(t, r, "instance-1")
	if diff := cmp.Diff(before, r.Host("instance-1").Machine().Snapshot()); diff != "" {
		t.Errorf("the host is not as it was (-before +after):\n%s", diff)
	}
}

// An administrator has changed the user of an entry by mistake and then removed the entry. The host is reachable
// again once it is listed with the correct user, as the instance reports.
func TestRemoval_WrongUserKeepsNodeUntilCorrected(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(1)})
	before := r.Host("instance-1").Machine().Snapshot()
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	address, _ := r.Host("instance-1").Entry()
	if err := r.SetInstances(t.Context(), map[string]string{address: "username=nobody"}); err != nil {
		t.Fatal(err)
	}
	if err := r.DeleteInstances(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitForNextAction(t, r, "instance-1", "If the removed entry had a wrong user, add the entry again with the correct user")
	getNode(t, r, "instance-1")
	list(t, r)
	waitUntilReady(t, r)
	if err := r.DeleteInstances(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitUntilDeleted(t, r, "instance-1")
	if diff := cmp.Diff(before, r.Host("instance-1").Machine().Snapshot()); diff != "" {
		t.Errorf("the host is not as it was (-before +after):\n%s", diff)
	}
}

// The key was changed while the host was a node, and no administrator has added the new key to the host. The
// operator adds the key and leaves it there, because the list of keys belongs to the administrator. L-23
func TestRemoval_UsesPreviousKey(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(1)})
	machine := r.Host("instance-1").Machine()
	before := machine.Snapshot()
	first := run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	if err := errors.Join(first.Stop(), r.RotateKey(t.Context(), true), r.DeleteInstances(t.Context())); err != nil {
		t.Fatal(err)
	}
	run(t, r)
	waitUntilDeleted(t, r, "instance-1")
	checkNothingLeft(t, r, "instance-1")
	after := machine.Snapshot()
	const authorizedKeys = `C:\ProgramData\ssh\administrators_authorized_keys`
	if after.Files[authorizedKeys].Size <= before.Files[authorizedKeys].Size {
		t.Error("the operator has not authorized the new key: the host was not reached with the previous one")
	}
	delete(before.Files, authorizedKeys)
	delete(after.Files, authorizedKeys)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the host is not as it was (-before +after):\n%s", diff)
	}
}

//
func TestRemoval_SecondAddressDoesNotAffectNode(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: []testenv.HostOptions{{DNSName: "instance-1.example.com"}}})
	run(t, r)
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
	uid := getNode(t, r, "instance-1").UID
	list(t, r)
	if !waitForEvent(t, r, "HostShared", "instance-1") {
		t.Error("no event says that the host stays")
	}
	if got := getNode(t, r, "instance-1"); got.UID != uid || got.Spec.Unschedulable {
		t.Errorf("the node was touched: %+v", got.Spec)
	}
	if reboots := r.Host("instance-1").Machine().Journal().Count(fake.KindReboot); reboots != 1 {
		t.Errorf("the host was restarted %d times, want once for its first configuration", reboots)
	}
}

// The operator must not remove a directory that existed before, or its contents. R-064
func TestRemoval_ExistingDirectoryIsKept(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(1)})
	machine := r.Host("instance-1").Machine()
	if err := machine.Drive().MkdirAll(`C:\k`); err != nil {
		t.Fatal(err)
	}
	if err := machine.Drive().WriteFile(`C:\k\accounts.xlsx`, []byte("mine")); err != nil {
		t.Fatal(err)
	}
	before := machine.Snapshot()
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	if err := r.DeleteInstances(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitUntilDeleted(t, r, "instance-1")
	if diff := cmp.Diff(before, machine.Snapshot()); diff != "" {
		t.Errorf("the host is not as it was (-before +after):\n%s", diff)
	}
}

// A client deletes the instance of a host during its removal. No list contains the host any more, so the instance
// is not recreated and the node stays unschedulable. Then the host is listed again. R-067
func TestRemoval_RelistedHostKeepsNodeAfterInstanceDeletion(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(1)})
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	uid := getNode(t, r, "instance-1").UID
	restore := r.Host("instance-1").Inject(winhost.RejectKey, winhost.Parameters{})
	if err := r.DeleteInstances(t.Context()); err != nil {
		t.Fatal(err)
	}
	instance := waitForReason(t, r, "instance-1", "AuthenticationFailed")
	if err := r.Client.Delete(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	waitUntilDeleted(t, r, "instance-1")
	if n := getNode(t, r, "instance-1"); !n.Spec.Unschedulable || n.Annotations[v1alpha1.AnnotationCordoned] == "" {
		t.Errorf("the node was not drained: %+v", n.Spec)
	}
	restore()
	list(t, r)
	waitUntilReady(t, r)
	n := getNode(t, r, "instance-1")
	if _, cordoned := n.Annotations[v1alpha1.AnnotationCordoned]; cordoned || n.Spec.Unschedulable || n.UID != uid {
		t.Errorf("the node is %s, annotations %v, %+v", n.UID, n.Annotations, n.Spec)
	}
}

// An instance was deleted while its host was being restored. The next instance of the host, under another key of
// the list, was removed before it had found the Node. R-067
func TestRemoval_NextInstanceRemovesNodeOfDeletedInstance(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: []testenv.HostOptions{{DNSName: testenv.DNSName(1)}}})
	h := r.Host("instance-1")
	before := h.Machine().Snapshot()
	_, value := h.Entry()
	await := func(key, what string, is func(*v1alpha1.WindowsInstance) bool) *v1alpha1.WindowsInstance {
		t.Helper()
		var found *v1alpha1.WindowsInstance
		waitUntil(t, "the instance of "+key+" "+what, func(ctx context.Context) (bool, error) {
			var list v1alpha1.WindowsInstanceList
			err := r.Client.List(ctx, &list)
			found = nil
			for i := range list.Items {
				if list.Items[i].Spec.Source.ConfigMapKey == key {
					found = &list.Items[i]
				}
			}
			return err == nil && is(found), err
		})
		return found
	}
	blocked := func(i *v1alpha1.WindowsInstance) bool { return i != nil && i.Status.Summary == "AgentBlocked" }
	run(t, r)
	requireNoError(t, r.SetInstances(t.Context(), map[string]string{h.Options.Address: value}))
	await(h.Options.Address, "to be Ready", func(i *v1alpha1.WindowsInstance) bool { return i != nil && testenv.IsReady(i) })

	restore := h.Inject(winhost.AgentBlocked, winhost.Parameters{})
	requireNoError(t, r.DeleteInstances(t.Context()))
	removed := await(h.Options.Address, "to be stopped in its removal", func(i *v1alpha1.WindowsInstance) bool {
		return blocked(i) && i.Spec.DesiredState == v1alpha1.DesiredStateRemoved
	})
	requireNoError(t, r.Client.Delete(t.Context(), removed))
	requireNoError(t, r.SetInstances(t.Context(), map[string]string{h.Options.DNSName: value}))
	if next := await(h.Options.DNSName, "to be stopped before it knows its Node", blocked); next.Status.NodeRef != nil {
		t.Fatalf("it knows its Node: %+v", next.Status.NodeRef)
	}
	requireNoError(t, r.DeleteInstances(t.Context()))
	restore()
	await(h.Options.DNSName, "to be gone", func(i *v1alpha1.WindowsInstance) bool { return i == nil })
	if err := r.Client.Get(t.Context(), keyOf("", h.Options.Name), &corev1.Node{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Node is left behind (%v)", err)
	}
	if diff := cmp.Diff(before, h.Machine().Snapshot()); diff != "" {
		t.Errorf("the host is not as it was (-before +after):\n%s", diff)
	}
}
