package byoh

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// list is a list of hosts on an API server in memory, with the source that reads it.
type list struct {
	t        *testing.T
	api      client.Client
	clock    *clocktesting.FakeClock
	recorder *events.FakeRecorder
	source   *Reconciler
}

// newList lists hosts 10.0.0.1 to 10.0.0.n, which are nodes.
func newList(t *testing.T, n int) *list {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	l := &list{t: t, clock: clocktesting.NewFakeClock(time.Unix(1<<30, 0)), recorder: events.NewFakeRecorder(100),
		api: fake.NewClientBuilder().WithScheme(scheme).WithObjects(
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "wmco"}}).Build()}
	l.restartSource()
	l.writeEntries(hostEntries(1, n))
	l.reconcileList()
	for _, instance := range l.listInstances() {
		instance.Status.HostKey = &v1alpha1.HostKey{Key: instance.Name}
		l.requireNoError(l.api.Update(t.Context(), &instance))
	}
	l.drainEvents()
	return l
}

// restartSource starts an operator with empty memory.
func (l *list) restartSource() {
	l.source = &Reconciler{Client: l.api, Live: l.api, Namespace: "wmco", Events: l.recorder, Clock: l.clock,
		Delays: RemovalDelays{}.WithDefaults()}
}

func (l *list) requireNoError(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func hostEntries(from, to int) map[string]string {
	entries := map[string]string{}
	for i := from; i <= to; i++ {
		entries[fmt.Sprintf("10.0.0.%d", i)] = "username=Administrator"
	}
	return entries
}

func configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "wmco", Name: ConfigMapName}}
}

func (l *list) writeEntries(entries map[string]string) {
	l.t.Helper()
	written := configMap()
	err := l.api.Get(l.t.Context(), client.ObjectKeyFromObject(written), written)
	written.Data = entries
	if err != nil {
		l.requireNoError(l.api.Create(l.t.Context(), written))
		return
	}
	l.requireNoError(l.api.Update(l.t.Context(), written))
}

func (l *list) deleteConfigMap() {
	l.t.Helper()
	l.requireNoError(l.api.Delete(l.t.Context(), configMap()))
}

// reconcileList makes the source read the list, and returns the delay before the next read.
func (l *list) reconcileList() time.Duration {
	l.t.Helper()
	result, err := l.source.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(configMap())})
	l.requireNoError(err)
	return result.RequeueAfter
}

// readAfter advances the clock and then makes the source read the list.
func (l *list) readAfter(passed time.Duration) time.Duration {
	l.t.Helper()
	l.clock.Step(passed)
	return l.reconcileList()
}

func (l *list) listInstances() []v1alpha1.WindowsInstance {
	l.t.Helper()
	var instances v1alpha1.WindowsInstanceList
	l.requireNoError(l.api.List(l.t.Context(), &instances))
	return instances.Items
}

// expectRemoved expects the number of instances that are marked for removal.
func (l *list) expectRemoved(want int) {
	l.t.Helper()
	got := 0
	for _, instance := range l.listInstances() {
		if instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved {
			got++
		}
	}
	if got != want {
		l.t.Errorf("%d hosts are being removed, want %d", got, want)
	}
}

// drainEvents returns the events so far.
func (l *list) drainEvents() string {
	var recorded []string
	for len(l.recorder.Events) > 0 {
		recorded = append(recorded, <-l.recorder.Events)
	}
	return strings.Join(recorded, "\n")
}

func (l *list) expectEvents(want string, times int) {
	l.t.Helper()
	if recorded := l.drainEvents(); strings.Count(recorded, want) != times {
		l.t.Errorf("told is %q, want %q %d times", recorded, want, times)
	}
}

// D-12
func TestRemovals_BriefListAbsenceRemovesNoHost(t *testing.T) {
	t.Run("deleted and made again, it changes nothing", func(t *testing.T) {
		l := newList(t, 3)
		l.deleteConfigMap()
		if next := l.reconcileList(); next != DefaultAbsence {
			t.Errorf("it is read again in %s", next)
		}
		l.readAfter(time.Second)
		l.writeEntries(hostEntries(1, 3))
		if next := l.reconcileList(); next != 0 {
			t.Errorf("it is read again in %s", next)
		}
		l.readAfter(time.Hour)
		l.expectRemoved(0)
		l.expectEvents("Removal", 0)
	})
	t.Run("deleted for good, it gives its only host back after the grace", func(t *testing.T) {
		l := newList(t, 1)
		l.deleteConfigMap()
		l.reconcileList()
		l.readAfter(DefaultAbsence - 1)
		l.expectRemoved(0)
		l.readAfter(1)
		l.expectRemoved(1)
	})
	t.Run("deleted for good, it gives many hosts back after the grace and the time for removals", func(t *testing.T) {
		l := newList(t, 3)
		l.deleteConfigMap()
		l.reconcileList()
		if next := l.readAfter(DefaultAbsence); next != DefaultRemoval {
			t.Errorf("it is read again in %s", next)
		}
		l.expectEvents("RemovalsDelayed", 1)
		l.readAfter(DefaultRemoval - 1)
		l.expectRemoved(0)
		l.readAfter(1)
		l.expectRemoved(3)
	})
	t.Run("a restart of the operator begins the grace again", func(t *testing.T) {
		l := newList(t, 1)
		l.deleteConfigMap()
		l.reconcileList()
		l.clock.Step(DefaultAbsence - 1)
		l.restartSource()
		if next := l.reconcileList(); next != DefaultAbsence {
			t.Errorf("it is read again in %s", next)
		}
		l.readAfter(DefaultAbsence)
		l.expectRemoved(1)
	})
}

//
func TestRemovals_FewHostsRemovedAtOnce(t *testing.T) {
	for name, c := range map[string]struct{ hosts, left int }{
		"half of the hosts":    {10, 5},
		"the only host":        {1, 0},
		"one of two":           {2, 1},
		"one of many":          {10, 9},
		"none of those listed": {10, 10},
	} {
		t.Run(name, func(t *testing.T) {
			l := newList(t, c.hosts)
			l.writeEntries(hostEntries(1, c.left))
			if next := l.reconcileList(); next != 0 {
				t.Errorf("the list is read again in %s", next)
			}
			l.expectRemoved(c.hosts - c.left)
			l.expectEvents("RemovalsDelayed", 0)
		})
	}
}

// R-064, D-12
func TestRemovals_MostHostsRemovedAfterDelay(t *testing.T) {
	t.Run("an event says so, once", func(t *testing.T) {
		l := newList(t, 10)
		l.writeEntries(hostEntries(1, 4))
		l.reconcileList()
		l.readAfter(time.Second)
		recorded := l.drainEvents()
		for _, want := range []string{"RemovalsDelayed", "6 of the 10 hosts", "10-0-0-5-", "list them again",
			l.clock.Now().Add(DefaultRemoval - time.Second).UTC().Format(time.RFC3339)} {
			if strings.Count(recorded, want) != 1 {
				t.Errorf("the events do not have %q once: %s", want, recorded)
			}
		}
		l.readAfter(DefaultRemoval - time.Second - 1)
		l.expectRemoved(0)
		l.readAfter(1)
		l.expectRemoved(6)
		l.expectEvents("RemovalsCanceled", 0)
	})
	t.Run("a correction of the list ends it", func(t *testing.T) {
		l := newList(t, 10)
		l.writeEntries(nil)
		l.reconcileList()
		l.clock.Step(DefaultRemoval - 1)
		l.writeEntries(hostEntries(1, 10))
		if next := l.reconcileList(); next != 0 {
			t.Errorf("the list is read again in %s", next)
		}
		l.expectEvents("RemovalsCanceled", 1)
		l.readAfter(time.Hour)
		l.expectRemoved(0)
	})
	t.Run("after a correction by half the rest is removed at once", func(t *testing.T) {
		l := newList(t, 10)
		l.writeEntries(hostEntries(1, 2))
		l.reconcileList()
		l.writeEntries(hostEntries(1, 8))
		l.reconcileList()
		l.expectRemoved(2)
	})
	t.Run("further hosts have their own minute, and the others wait with them", func(t *testing.T) {
		l := newList(t, 10)
		l.writeEntries(hostEntries(1, 4))
		l.reconcileList()
		l.clock.Step(DefaultRemoval / 2)
		l.writeEntries(hostEntries(1, 3))
		l.reconcileList()
		l.expectEvents("RemovalsDelayed", 2)
		l.readAfter(DefaultRemoval - 1)
		l.expectRemoved(0)
		l.readAfter(1)
		l.expectRemoved(7)
	})
	t.Run("a restart of the operator begins the minute again, and once", func(t *testing.T) {
		l := newList(t, 10)
		l.writeEntries(hostEntries(1, 4))
		l.reconcileList()
		l.clock.Step(DefaultRemoval - 1)
		l.restartSource()
		if next := l.reconcileList(); next != DefaultRemoval {
			t.Errorf("the list is read again in %s", next)
		}
		l.readAfter(DefaultRemoval)
		l.expectRemoved(6)
	})
	t.Run("other changes are not held up", func(t *testing.T) {
		l := newList(t, 3)
		entries := map[string]string{"10.0.0.1": "username=core", "10.0.0.9": "username=core"}
		l.writeEntries(entries)
		l.reconcileList()
		l.expectRemoved(0)
		users := map[string]string{}
		for _, instance := range l.listInstances() {
			users[instance.Spec.Address] = instance.Spec.Username
		}
		if users["10.0.0.1"] != "core" || users["10.0.0.9"] != "core" || users["10.0.0.2"] != "Administrator" {
			t.Errorf("the users are %v", users)
		}
	})
	t.Run("hosts that were never reached go at once", func(t *testing.T) {
		l := newList(t, 0)
		l.writeEntries(map[string]string{"10.0.0.1": "slip", "10.0.0.2": "slip"})
		l.reconcileList()
		l.writeEntries(nil)
		l.reconcileList()
		l.expectRemoved(2)
	})
}

// Any client that may label instances can remove the source label.
func TestReconcile_UnlabeledInstanceStillManaged(t *testing.T) {
	l := newList(t, 2)
	unlabel := func(key string) {
		for _, instance := range l.listInstances() {
			if instance.Spec.Source.ConfigMapKey == key {
				instance.Labels = nil
				l.requireNoError(l.api.Update(t.Context(), &instance))
			}
		}
	}
	unlabel("10.0.0.1")
	unlabel("10.0.0.2")
	l.writeEntries(map[string]string{"10.0.0.1": "username=core"})
	l.reconcileList()
	l.expectRemoved(1)
	for _, instance := range l.listInstances() {
		if instance.Spec.Source.ConfigMapKey == "10.0.0.1" && (instance.Spec.Username != "core" ||
			instance.Labels[v1alpha1.LabelSource] != v1alpha1.SourceConfigMap) {
			t.Errorf("the user is %s, the labels are %v", instance.Spec.Username, instance.Labels)
		}
	}
}
