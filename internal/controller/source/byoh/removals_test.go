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
	l.restart()
	l.writes(hosts(1, n))
	l.reads()
	for _, instance := range l.instances() {
		instance.Status.HostKey = &v1alpha1.HostKey{Key: instance.Name}
		l.must(l.api.Update(t.Context(), &instance))
	}
	l.told()
	return l
}

// restart starts an operator with empty memory.
func (l *list) restart() {
	l.source = &Reconciler{Client: l.api, Live: l.api, Namespace: "wmco", Events: l.recorder, Clock: l.clock,
		Patience: Patience{}.OrDefault()}
}

func (l *list) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func hosts(from, to int) map[string]string {
	entries := map[string]string{}
	for i := from; i <= to; i++ {
		entries[fmt.Sprintf("10.0.0.%d", i)] = "username=Administrator"
	}
	return entries
}

func configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "wmco", Name: ConfigMapName}}
}

func (l *list) writes(entries map[string]string) {
	l.t.Helper()
	written := configMap()
	err := l.api.Get(l.t.Context(), client.ObjectKeyFromObject(written), written)
	written.Data = entries
	if err != nil {
		l.must(l.api.Create(l.t.Context(), written))
		return
	}
	l.must(l.api.Update(l.t.Context(), written))
}

func (l *list) deletes() {
	l.t.Helper()
	l.must(l.api.Delete(l.t.Context(), configMap()))
}

// reads makes the source read the list, and returns the delay before the next read.
func (l *list) reads() time.Duration {
	l.t.Helper()
	result, err := l.source.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(configMap())})
	l.must(err)
	return result.RequeueAfter
}

// after advances the clock and then makes the source read the list.
func (l *list) after(passed time.Duration) time.Duration {
	l.t.Helper()
	l.clock.Step(passed)
	return l.reads()
}

func (l *list) instances() []v1alpha1.WindowsInstance {
	l.t.Helper()
	var instances v1alpha1.WindowsInstanceList
	l.must(l.api.List(l.t.Context(), &instances))
	return instances.Items
}

// removed expects the number of instances that are marked for removal.
func (l *list) removed(want int) {
	l.t.Helper()
	got := 0
	for _, instance := range l.instances() {
		if instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved {
			got++
		}
	}
	if got != want {
		l.t.Errorf("%d hosts are being removed, want %d", got, want)
	}
}

// told returns the events so far.
func (l *list) told() string {
	var told []string
	for len(l.recorder.Events) > 0 {
		told = append(told, <-l.recorder.Events)
	}
	return strings.Join(told, "\n")
}

func (l *list) tells(want string, times int) {
	l.t.Helper()
	if told := l.told(); strings.Count(told, want) != times {
		l.t.Errorf("told is %q, want %q %d times", told, want, times)
	}
}

// D-12
func TestAListThatIsAbsentForAMomentGivesNoHostBack(t *testing.T) {
	t.Run("deleted and made again, it changes nothing", func(t *testing.T) {
		l := newList(t, 3)
		l.deletes()
		if next := l.reads(); next != DefaultAbsence {
			t.Errorf("it is read again in %s", next)
		}
		l.after(time.Second)
		l.writes(hosts(1, 3))
		if next := l.reads(); next != 0 {
			t.Errorf("it is read again in %s", next)
		}
		l.after(time.Hour)
		l.removed(0)
		l.tells("Removal", 0)
	})
	t.Run("deleted for good, it gives its only host back after the grace", func(t *testing.T) {
		l := newList(t, 1)
		l.deletes()
		l.reads()
		l.after(DefaultAbsence - 1)
		l.removed(0)
		l.after(1)
		l.removed(1)
	})
	t.Run("deleted for good, it gives many hosts back after the grace and the time for removals", func(t *testing.T) {
		l := newList(t, 3)
		l.deletes()
		l.reads()
		if next := l.after(DefaultAbsence); next != DefaultRemoval {
			t.Errorf("it is read again in %s", next)
		}
		l.tells("RemovalsDelayed", 1)
		l.after(DefaultRemoval - 1)
		l.removed(0)
		l.after(1)
		l.removed(3)
	})
	t.Run("a restart of the operator begins the grace again", func(t *testing.T) {
		l := newList(t, 1)
		l.deletes()
		l.reads()
		l.clock.Step(DefaultAbsence - 1)
		l.restart()
		if next := l.reads(); next != DefaultAbsence {
			t.Errorf("it is read again in %s", next)
		}
		l.after(DefaultAbsence)
		l.removed(1)
	})
}

//
func TestAFewHostsAreRemovedAtOnce(t *testing.T) {
	for name, c := range map[string]struct{ hosts, left int }{
		"half of the hosts":    {10, 5},
		"the only host":        {1, 0},
		"one of two":           {2, 1},
		"one of many":          {10, 9},
		"none of those listed": {10, 10},
	} {
		t.Run(name, func(t *testing.T) {
			l := newList(t, c.hosts)
			l.writes(hosts(1, c.left))
			if next := l.reads(); next != 0 {
				t.Errorf("the list is read again in %s", next)
			}
			l.removed(c.hosts - c.left)
			l.tells("RemovalsDelayed", 0)
		})
	}
}

// R-064, D-12
func TestMostHostsAreRemovedAfterAMinute(t *testing.T) {
	t.Run("an event says so, once", func(t *testing.T) {
		l := newList(t, 10)
		l.writes(hosts(1, 4))
		l.reads()
		l.after(time.Second)
		told := l.told()
		for _, want := range []string{"RemovalsDelayed", "6 of the 10 hosts", "10-0-0-5-", "list them again",
			l.clock.Now().Add(DefaultRemoval - time.Second).UTC().Format(time.RFC3339)} {
			if strings.Count(told, want) != 1 {
				t.Errorf("the events do not have %q once: %s", want, told)
			}
		}
		l.after(DefaultRemoval - time.Second - 1)
		l.removed(0)
		l.after(1)
		l.removed(6)
		l.tells("RemovalsCanceled", 0)
	})
	t.Run("a correction of the list ends it", func(t *testing.T) {
		l := newList(t, 10)
		l.writes(nil)
		l.reads()
		l.clock.Step(DefaultRemoval - 1)
		l.writes(hosts(1, 10))
		if next := l.reads(); next != 0 {
			t.Errorf("the list is read again in %s", next)
		}
		l.tells("RemovalsCanceled", 1)
		l.after(time.Hour)
		l.removed(0)
	})
	t.Run("after a correction by half the rest is removed at once", func(t *testing.T) {
		l := newList(t, 10)
		l.writes(hosts(1, 2))
		l.reads()
		l.writes(hosts(1, 8))
		l.reads()
		l.removed(2)
	})
	t.Run("further hosts have their own minute, and the others wait with them", func(t *testing.T) {
		l := newList(t, 10)
		l.writes(hosts(1, 4))
		l.reads()
		l.clock.Step(DefaultRemoval / 2)
		l.writes(hosts(1, 3))
		l.reads()
		l.tells("RemovalsDelayed", 2)
		l.after(DefaultRemoval - 1)
		l.removed(0)
		l.after(1)
		l.removed(7)
	})
	t.Run("a restart of the operator begins the minute again, and once", func(t *testing.T) {
		l := newList(t, 10)
		l.writes(hosts(1, 4))
		l.reads()
		l.clock.Step(DefaultRemoval - 1)
		l.restart()
		if next := l.reads(); next != DefaultRemoval {
			t.Errorf("the list is read again in %s", next)
		}
		l.after(DefaultRemoval)
		l.removed(6)
	})
	t.Run("other changes are not held up", func(t *testing.T) {
		l := newList(t, 3)
		entries := map[string]string{"10.0.0.1": "username=core", "10.0.0.9": "username=core"}
		l.writes(entries)
		l.reads()
		l.removed(0)
		users := map[string]string{}
		for _, instance := range l.instances() {
			users[instance.Spec.Address] = instance.Spec.Username
		}
		if users["10.0.0.1"] != "core" || users["10.0.0.9"] != "core" || users["10.0.0.2"] != "Administrator" {
			t.Errorf("the users are %v", users)
		}
	})
	t.Run("hosts that were never reached go at once", func(t *testing.T) {
		l := newList(t, 0)
		l.writes(map[string]string{"10.0.0.1": "slip", "10.0.0.2": "slip"})
		l.reads()
		l.writes(nil)
		l.reads()
		l.removed(2)
	})
}

// Any client that may label instances can remove the source label.
func TestAnInstanceWithoutItsLabelIsStillTheLists(t *testing.T) {
	l := newList(t, 2)
	unlabel := func(key string) {
		for _, instance := range l.instances() {
			if instance.Spec.Source.ConfigMapKey == key {
				instance.Labels = nil
				l.must(l.api.Update(t.Context(), &instance))
			}
		}
	}
	unlabel("10.0.0.1")
	unlabel("10.0.0.2")
	l.writes(map[string]string{"10.0.0.1": "username=core"})
	l.reads()
	l.removed(1)
	for _, instance := range l.instances() {
		if instance.Spec.Source.ConfigMapKey == "10.0.0.1" && (instance.Spec.Username != "core" ||
			instance.Labels[v1alpha1.LabelSource] != v1alpha1.SourceConfigMap) {
			t.Errorf("the user is %s, the labels are %v", instance.Spec.Username, instance.Labels)
		}
	}
}
