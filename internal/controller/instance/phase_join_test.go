package instance

import (
	"context"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// liveLists counts the lists that are read from the API server.
type liveLists struct {
	client.Reader
	count int
}

func (l *liveLists) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	l.count++
	return l.Reader.List(ctx, list, options...)
}

// All hosts of a fleet that join at once would list all of the fleet each time that they look.
func TestToWaitForANodeListsNothing(t *testing.T) {
	x, _, _ := hostToJoin(t, "None")
	x.until("the kubelet's certificate", summarized(v1alpha1.ReasonNodeNotRegistered))
	lists := &liveLists{Reader: x.Live}
	x.Live = lists
	for range 3 {
		x.clock.Step(time.Second)
		if instance, _ := x.reconcile(); instance.Status.Summary != v1alpha1.ReasonNodeNotRegistered || lists.count > 0 {
			t.Fatalf("it is %s, after %d lists", instance.Status.Summary, lists.count)
		}
	}
}

// What a certificate was signed on is known; but an apply comes before the Node is bound, and it may take many minutes.
func TestWhatACertificateWasSignedOnIsReadAgainBeforeTheNodeIsBound(t *testing.T) {
	nobodys := func(*corev1.Node) {}
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		took   time.Duration
		again  bool
	}{
		"not after a moment":                  {nobodys, reuseLimit - time.Second, false},
		"after an apply that took its time":   {nobodys, reuseLimit, true},
		"for a Node that says whose it is":    {func(n *corev1.Node) { n.Annotations = map[string]string{v1alpha1.AnnotationInstance: "another"} }, 0, true},
		"for a Node that says it is this one": {func(n *corev1.Node) { n.Annotations = map[string]string{v1alpha1.AnnotationInstance: machine} }, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t)
			instance := listed()
			instance.Status.NodeRef = &v1alpha1.NodeReference{Name: machine, Confirmed: true}
			x.create(instance)
			lists := &liveLists{Reader: x.Live}
			x.Live = lists
			s, phase := x.scope(x.instance()), x.rooms().join
			s.Cluster = *x.facts
			claim, o := phase.mayHaveCertificates(t.Context(), s)
			if o != nil || claim == nil || lists.count == 0 {
				t.Fatalf("%+v; %+v, after %d lists", claim, o, lists.count)
			}
			lists.count = 0
			node := registered()
			c.change(node)
			taken := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: machine}}
			for _, object := range []client.Object{node, taken} {
				if err := x.Client.Create(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			x.clock.Step(c.took)
			_, o = phase.ownNode(t.Context(), s, claim)
			if again := lists.count > 0; again != c.again {
				t.Errorf("it is read again: %t", again)
			}
			if refused := o != nil && o.Reason == v1alpha1.ReasonNameConflict; refused != c.again {
				t.Errorf("in the way is %+v", o)
			}
		})
	}
}
