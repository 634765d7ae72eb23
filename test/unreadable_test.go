package test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// A list of Windows that fails midway must not be treated as complete. An object of the Host Networking Service
// that vanishes during a call must not stop the operator.
func TestWindowsLists_FailureReportedAndShrinkingTolerated(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(2)})
	unreadable, shrinking := r.Host("instance-1").Machine(), r.Host("instance-2").Machine()
	before := shrinking.Snapshot()
	restore := unreadable.FailList(fake.AntivirusList, 1, fake.CodeAccessDenied)
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)

	t.Run("exclusions that cannot be read are not set, and the status and an event have the reason", func(t *testing.T) {
		if set := unreadable.Exclusions(); len(set) != 0 {
			t.Errorf("the exclusions are %v", set)
		}
		instance, err := r.Instance(t.Context(), "instance-1")
		requireNoError(t, err)
		ready := ""
		for _, condition := range instance.Status.Conditions {
			if condition.Type == "Ready" {
				ready = condition.Message
			}
		}
		if !strings.Contains(ready, "AntivirusExclusions") || !strings.Contains(ready, "0x80041003") {
			t.Errorf("Ready has the message %q", ready)
		}
		ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
		defer cancel()
		requireNoError(t, r.WaitFor(ctx, "the event about the exclusions", &eventsv1.Event{},
			func(ctx context.Context, reader client.Reader) (bool, error) {
				var list eventsv1.EventList
				err := reader.List(ctx, &list, client.InNamespace(r.Namespace()))
				for _, e := range list.Items {
					if e.Reason == "AdvisoryCheckFailed" && e.Regarding.Name == instance.Name && strings.Contains(e.Note, "0x80041003") {
						return true, err
					}
				}
				return false, err
			}))
	})
	restore()

	t.Run("exclusions that cannot be read at the removal stay, and networks that vanish meanwhile do not stop it", func(t *testing.T) {
		set := shrinking.Exclusions()
		if len(set) == 0 {
			t.Fatal("there are no exclusions to remove")
		}
		shrinking.FailList(fake.AntivirusList, 0, fake.CodeInvalidClass)
		vanished := shrinking.VanishHNS("OVNKubernetesHybridOverlayNetwork", true)
		list(t, r, "instance-1")
		waitUntilDeleted(t, r, "instance-2")
		if !vanished() {
			t.Error("no network has vanished")
		}
		if diff := cmp.Diff(set, shrinking.Exclusions()); diff != "" {
			t.Errorf("the exclusions differ:\n%s", diff)
		}
		after := shrinking.Snapshot()
		after.Exclusions = before.Exclusions
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("the host is not as it was (-before +after):\n%s", diff)
		}
	})
}
