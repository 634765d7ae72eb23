package test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/metrics"
	"github.com/windows-machine-config/wmco/internal/controller/operatorcondition"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// numericVersion returns the resource version of an object. Versions of all kinds are comparable on the API server.
func numericVersion(t *testing.T, object client.Object) uint64 {
	t.Helper()
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// recordChanges records the changes of a kind from now on. The returned function ends the watch and returns the
// changes.
func recordChanges(t *testing.T, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (end func() []watch.Event) {
	t.Helper()
	if err := c.List(t.Context(), list, options...); err != nil {
		t.Fatal(err)
	}
	options = append(options, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
	watcher, err := c.Watch(t.Context(), list, options...)
	if err != nil {
		t.Fatal(err)
	}
	var seen []watch.Event
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range watcher.ResultChan() {
			seen = append(seen, e)
		}
	}()
	return func() []watch.Event {
		watcher.Stop()
		<-ended
		return seen
	}
}

// span is the time from the write that cordoned a node to the write that deleted it.
type span struct{ from, to uint64 }

func restartCount(h *testenv.Host) int { return h.Machine().Journal().Count(fake.KindReboot) }

// A host restarts to remove the Containers feature, and its Node stays Ready meanwhile: the API server detects a
// missing kubelet only after 40 s.
func TestSlot_ListedHostsRestoredOneAtATime(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Cluster: exclusiveCluster(t), Hosts: testenv.Hosts(2)}) // operators of a process share metrics
	scheme := runtime.NewScheme()
	requireNoError(t, operatorcondition.AddToScheme(scheme))
	olm, err := client.NewWithWatch(r.Cluster().Config, client.Options{Scheme: scheme})
	requireNoError(t, err)
	condition := &operatorsv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace(), Name: "wmco.v1"}}
	requireNoError(t, olm.Create(t.Context(), condition))
	t.Cleanup(func() { requireNoError(t, olm.Delete(context.WithoutCancel(t.Context()), condition)) })
	_, err = r.RunOperator(func(c *operator.Config) { c.OperatorCondition = condition.Name })
	requireNoError(t, err)
	list(t, r)
	waitUntilReady(t, r)

	started := testutil.ToFloat64(metrics.DisruptionsStarted.Of(string(v1alpha1.CauseRemoval)))
	before, uids := map[string]int{}, map[string]types.UID{}
	for _, h := range r.Hosts() {
		instance, err := r.Instance(t.Context(), h.Options.Name)
		requireNoError(t, err)
		before[h.NodeName()], uids[h.NodeName()] = restartCount(h), instance.UID
	}
	nodes := recordChanges(t, r.Client, &corev1.NodeList{})
	conditions := recordChanges(t, olm, &operatorsv2.OperatorConditionList{}, client.InNamespace(r.Namespace()))
	requireNoError(t, r.DeleteInstances(t.Context()))
	for _, h := range r.Hosts() {
		waitUntilDeleted(t, r, h.Options.Name)
		if got := restartCount(h) - before[h.NodeName()]; got != 1 {
			t.Errorf("host %s has restarted %d times: this test is about one restart", h.Options.Name, got)
		}
	}

	spans := cordonedSpans(t, nodes())
	if len(spans) != 2 || spans[0].to > spans[1].from {
		t.Errorf("the nodes were cordoned and deleted at %v: the second one is to wait until the first one is gone", spans)
	}
	if got := testutil.ToFloat64(metrics.DisruptionsStarted.Of(string(v1alpha1.CauseRemoval))) - started; got != 2 {
		t.Errorf("wmco_disruptions_total counts %v disruptions", got)
	}
	for _, h := range r.Hosts() {
		if got := countStarts(t, r, uids[h.NodeName()]); got != 1 {
			t.Errorf("%d events DisruptionStarted of Node %s for its removal", got, h.NodeName())
		}
	}
	checkUpgradeableOutside(t, conditions(), spans)
}

// cordonedSpans returns the span of each Node from cordon to deletion, ordered by the cordons.
func cordonedSpans(t *testing.T, changes []watch.Event) []span {
	t.Helper()
	began := map[string]uint64{}
	var spans []span
	for _, e := range changes {
		node, ok := e.Object.(*corev1.Node)
		if !ok {
			continue
		}
		_, cordoned := node.Annotations[v1alpha1.AnnotationCordoned]
		switch {
		case e.Type == watch.Deleted && began[node.Name] > 0:
			spans = append(spans, span{began[node.Name], numericVersion(t, node)})
		case cordoned && began[node.Name] == 0:
			began[node.Name] = numericVersion(t, node)
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.from) - int(b.from) })
	return spans
}

// countStarts counts the events DisruptionStarted for the removal of an instance's host.
func countStarts(t *testing.T, r *testenv.Environment, instance types.UID) (count int) {
	t.Helper()
	var events eventsv1.EventList
	requireNoError(t, r.Client.List(t.Context(), &events, client.InNamespace(r.Namespace())))
	for _, e := range events.Items {
		if e.Reason != "DisruptionStarted" || e.Regarding.UID != instance || !strings.Contains(e.Note, string(v1alpha1.CauseRemoval)) {
			continue
		}
		count++
		if e.Series != nil {
			count += int(e.Series.Count) - 1
		}
	}
	return count
}

// checkUpgradeableOutside checks that OLM may not replace the operator at the end of each span, and that no span
// contains another report. The operator reports shortly after the start of a disruption.
func checkUpgradeableOutside(t *testing.T, changes []watch.Event, spans []span) {
	t.Helper()
	for _, s := range spans {
		last := metav1.ConditionUnknown
		for _, e := range changes {
			object, ok := e.Object.(*operatorsv2.OperatorCondition)
			if !ok || numericVersion(t, object) > s.to {
				continue
			}
			if found := meta.FindStatusCondition(object.Spec.Conditions, operatorsv2.Upgradeable); found != nil {
				last = found.Status
				if numericVersion(t, object) > s.from && last != metav1.ConditionFalse {
					t.Errorf("Upgradeable is %s while a node is taken out of the cluster: %s", last, found.Message)
				}
			}
		}
		if last != metav1.ConditionFalse {
			t.Errorf("Upgradeable is %s when the node is deleted", last)
		}
	}
}
