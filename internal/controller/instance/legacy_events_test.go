package instance

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// legacyEvents records events that regard a reference.
type legacyEvents struct {
	seen  []string
	notes []string
}

// Eventf implements events.EventRecorder.
func (l *legacyEvents) Eventf(regarding, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	if object, ok := regarding.(*corev1.ObjectReference); ok {
		l.seen = append(l.seen, strings.Join([]string{eventType, reason, object.APIVersion, object.Kind, object.Namespace, object.Name, string(object.UID)}, " "))
		if text, ok := args[0].(string); ok && note == "%s" {
			l.notes = append(l.notes, text)
		}
	}
}

// expectEvents compares the events since the last call.
func (l *legacyEvents) expectEvents(t *testing.T, when string, want ...string) {
	t.Helper()
	if !slices.Equal(l.seen, want) {
		t.Errorf("%s the events are %q, want %q", when, l.seen, want)
	}
	l.seen = nil
}

// Alerts and scripts of clusters with the legacy operator depend on these reasons and objects.
func TestLegacyEvents_RecordedOnce(t *testing.T) {
	for _, test := range []struct {
		name                  string
		source                v1alpha1.Source
		failed, done, removed string
	}{
		{"a listed host", v1alpha1.Source{ConfigMapKey: "10.0.128.7"},
			"Warning InstanceSetupFailure v1 ConfigMap wmco windows-instances ",
			"Normal InstanceSetup v1 ConfigMap wmco windows-instances ",
			"Normal InstanceTeardown v1 ConfigMap wmco windows-instances "},
		{"the host of a Machine", v1alpha1.Source{Machine: &v1alpha1.MachineReference{Namespace: "openshift-machine-api", Name: machine, UID: "1"}},
			"Warning MachineSetupFailure machine.openshift.io/v1beta1 Machine openshift-machine-api " + machine + " 1",
			"Normal MachineSetup machine.openshift.io/v1beta1 Machine openshift-machine-api " + machine + " 1", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			x, _, _ := hostToJoin(t, "Nutanix")
			recorded := &legacyEvents{}
			x.Events = recorded
			instance := &v1alpha1.WindowsInstance{}
			if err := x.Client.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: machine}, instance); err != nil {
				t.Fatal(err)
			}
			x.changeSpec(instance, func(i *v1alpha1.WindowsInstance) { i.Spec.Source = test.source })
			away := func(context.Context) (net.Conn, error) { return nil, errors.New("no route to host") }
			present := x.server

			x.server = away
			for range 6 { // longer than userDataTimeout
				x.reconcile()
				x.clock.Step(10 * time.Minute)
			}
			recorded.expectEvents(t, "after many failed attempts", test.failed)
			if len(recorded.notes) == 0 {
				t.Fatal("there is no note")
			}
			if !strings.Contains(recorded.notes[0], "configuration failure: ") || !strings.Contains(recorded.notes[0], "no route to host") {
				t.Errorf("the note is %q", recorded.notes[0])
			}

			x.server = present
			instance = x.joinNode()
			for range 3 {
				instance, _ = x.reconcile()
			}
			recorded.expectEvents(t, "of a Ready node", test.done)

			if test.removed == "" {
				return
			}
			x.changeSpec(instance, setRemoved)
			x.server = away
			for range 3 {
				x.reconcile()
			}
			recorded.expectEvents(t, "while the host is unreachable for its removal")
			x.server = present
			for range 60 {
				left, after := x.reconcile()
				if left == nil {
					break
				}
				x.clock.Step(after)
			}
			recorded.expectEvents(t, "of a restored host", test.removed)
		})
	}
}
