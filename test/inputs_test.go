package test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// waitForReason waits until a condition of the host's instance has the reason.
func waitForReason(t *testing.T, r *testenv.Environment, name string, reasons ...string) *v1alpha1.WindowsInstance {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	var found *v1alpha1.WindowsInstance
	err := r.WaitForInstance(ctx, r.Host(name), "to say "+strings.Join(reasons, " or "),
		func(i *v1alpha1.WindowsInstance) bool {
			found = i
			return i != nil && slices.ContainsFunc(i.Status.Conditions, func(c metav1Condition) bool {
				return slices.Contains(reasons, c.Reason)
			})
		})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// waitForEvent reports whether an event with the reason has a note that contains the text.
func waitForEvent(t *testing.T, r *testenv.Environment, reason, text string) bool {
	t.Helper()
	seen := false
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	err := r.WaitFor(ctx, "event "+reason, &eventsv1.Event{}, func(ctx context.Context, reader reader) (bool, error) {
		var list eventsv1.EventList
		if err := reader.List(ctx, &list); err != nil {
			return false, err
		}
		seen = slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Reason == reason && strings.Contains(e.Note, text)
		})
		return seen, nil
	})
	if err != nil {
		t.Log(err)
	}
	return seen
}

func TestHostKey_ChangedKeyStopsHostUntilAccepted(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(1)})
	operator := run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	if err := operator.Stop(); err != nil {
		t.Fatal(err)
	}
	r.Host("instance-1").Inject(winhost.ChangedHostKey, winhost.Parameters{})
	run(t, r)
	if err := r.DeleteInstances(t.Context()); err != nil {
		t.Fatal(err)
	}
	instance := waitForReason(t, r, "instance-1", "HostKeyChanged")
	explanation := testenv.Explain(instance)
	if !strings.Contains(explanation, instance.Status.HostKey.Fingerprint) ||
		!strings.Contains(explanation, v1alpha1.AnnotationAcceptHostKey+"=SHA256:") {
		t.Fatalf("the status names neither the old key nor the command that accepts the new one:\n%s", explanation)
	}
	_, rest, _ := strings.Cut(explanation, v1alpha1.AnnotationAcceptHostKey+"=")
	fingerprint, _, _ := strings.Cut(rest, " ")
	setAnnotation(t, r, instance, v1alpha1.AnnotationAcceptHostKey, strings.TrimRight(fingerprint, "`.\n"))
	waitUntilDeleted(t, r, "instance-1")
}

//
func TestPrivateKey_OperatorWaitsForValidKey(t *testing.T) {
	r := start(t, testenv.Options{Hosts: testenv.Hosts(1)})
	if _, err := r.InstallOperator(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	run(t, r)
	list(t, r)
	waitForReason(t, r, "instance-1", v1alpha1.ReasonPrivateKeyMissing)

	if err := r.SetKey(t.Context(), []byte("no key")); err != nil {
		t.Fatal(err)
	}
	instance := waitForReason(t, r, "instance-1", v1alpha1.ReasonPrivateKeyInvalid)
	for _, name := range []string{"cloud-private-key", "private-key.pem"} {
		if !strings.Contains(testenv.Explain(instance), name) {
			t.Errorf("the status does not name %s:\n%s", name, testenv.Explain(instance))
		}
	}
	if !waitForEvent(t, r, "PrivateKeyInvalid", "private-key.pem") {
		t.Error("no event names the key")
	}
	if err := r.CreateKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitUntilReady(t, r)
}

//
func TestStoryAMalformedEntryIsReportedAndHoldsUpNobody(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(1)})
	run(t, r)
	entries := r.Entries()
	entries["10.9.0.200"] = "user=core"
	if err := r.SetInstances(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
	waitUntilReady(t, r)
	if !waitForEvent(t, r, "InvalidEntry", "10.9.0.200") {
		t.Error("no event names the malformed key")
	}
	awaitFault := func(fault string) {
		t.Helper()
		if err := r.WaitFor(t.Context(), "the status to have the fault of the entry", &v1alpha1.WindowsInstance{},
			func(ctx context.Context, reader client.Reader) (bool, error) {
				var list v1alpha1.WindowsInstanceList
				err := reader.List(ctx, &list)
				return err == nil && slices.ContainsFunc(list.Items, func(i v1alpha1.WindowsInstance) bool {
					return i.Spec.Address == "10.9.0.200" && i.Status.Summary == v1alpha1.ReasonInvalidEntry &&
						strings.Contains(testenv.Explain(&i), fault)
				}), err
			}); err != nil {
			t.Fatal(err)
		}
	}
	awaitFault("the value must be username=<user>, with the user that")
	entries["10.9.0.200"] = "username=a:b"
	if err := r.SetInstances(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
	awaitFault("which Windows does not allow there")
}

//
func TestDuplicate_HostWithTwoAddressesConfiguredOnce(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: []testenv.HostOptions{{DNSName: "instance-1.example.com"}}})
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	entries := r.Entries()
	entries[r.Host("instance-1").Options.Address] = "username=Administrator"
	if err := r.SetInstances(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
	if !waitForSummary(t, r, r.Host("instance-1").Options.Address, v1alpha1.ReasonDuplicateHost) {
		t.Error("the second address is not reported")
	}
	waitUntilReady(t, r)
	var nodes corev1.NodeList
	if err := r.Client.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != 1 {
		t.Errorf("there are %d nodes", len(nodes.Items))
	}
}

//
func TestHostName_InvalidNodeNameLeavesHostUnchanged(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: []testenv.HostOptions{{Name: "WIN_Host"}}})
	run(t, r)
	list(t, r)
	instance := waitForReason(t, r, "WIN_Host", v1alpha1.ReasonHostNameInvalid)
	if !strings.Contains(testenv.Explain(instance), "RFC 1123") {
		t.Errorf("the status does not say what a name must be:\n%s", testenv.Explain(instance))
	}
	journal := r.Host("WIN_Host").Machine().Journal()
	if got := journal.Count(fake.KindReboot) + journal.Count(fake.KindFeature) +
		journal.Count(fake.KindHostName); got > 0 {
		t.Errorf("the host was changed: %s", formatJournal(journal))
	}
	var nodes corev1.NodeList
	if err := r.Client.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool {
		return strings.HasPrefix(n.Name, "win")
	}) || instance.Status.NodeRef != nil {
		t.Errorf("it has a Node: %v", instance.Status.NodeRef)
	}
}
