package instance

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
)

// patience is how long a pass waits for its Node, as administrators know it.
const patience = 10 * time.Second

// waitingClock tells when a pass begins to wait for its Node.
type waitingClock struct {
	*clocktesting.FakeClock
	waits func()
}

func (c waitingClock) NewTimer(d time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(d)
	if d == patience {
		c.waits()
	}
	return timer
}

// awaits has passes wait for their Node, and calls waits each time that one begins to.
func (x *trial) awaits(waits func()) {
	x.nodeChanges = &nodes.Changes{}
	x.Clock = waitingClock{x.clock, waits}
}

// The pass has held its worker for ten seconds, but not because of its host.
func TestAHostIsNotSlowBecauseItsNodeIsWaitedFor(t *testing.T) {
	x, _, _ := hostToJoin(t, "None")
	x.registers()
	node := x.node()
	node.Status.Conditions[0].Status = corev1.ConditionFalse
	if err := x.Client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	x.until("the wait for the Node", summarized(v1alpha1.ReasonNodeNotReady))
	x.clock.Step(10 * time.Minute)
	waits := 0
	x.awaits(func() {
		waits++
		x.clock.Step(patience)
	})
	instance, _ := x.reconcile()
	session := x.session(x.instance())
	if instance.Status.Summary != v1alpha1.ReasonNodeNotReady || session.Attempts == 0 || waits != 1 {
		t.Fatalf("after %d waits it is %s, with %d failed attempts", waits, instance.Status.Summary, session.Attempts)
	}
	if session.Slow {
		t.Error("it counts as slow")
	}
}

// A person who takes a host out of the list does not wait for its Node.
func TestAPassThatWaitsForItsNodeEndsWhenItsHostIsToBeGivenBack(t *testing.T) {
	x, _, _ := hostToJoin(t, "None")
	x.until("the kubelet's certificate", summarized(v1alpha1.ReasonNodeNotRegistered))
	api, ok := x.Client.(client.WithWatch)
	if !ok {
		t.Fatalf("it is a %T", x.Client)
	}
	waits := false
	x.awaits(func() { waits = true })
	x.Client = interceptor.NewClient(api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			err := c.Get(ctx, key, object, options...)
			if _, looks := object.(*corev1.Node); looks && waits { // what it does while it waits
				waits = false
				before := x.instance()
				x.change(x.instance(), remove)
				x.tellOvertaken().Update(ctx, event.UpdateEvent{ObjectOld: before, ObjectNew: x.instance()}, nil)
			}
			return err
		},
	})
	end := time.AfterFunc(20*time.Second, func() { x.clock.Step(patience) }) // of a test that fails
	defer end.Stop()
	begin := x.clock.Now()
	x.reconcile()
	if took := x.clock.Since(begin); took != 0 || x.instance().Spec.DesiredState != v1alpha1.DesiredStateRemoved {
		t.Fatalf("it took %s until the host was %s", took, x.instance().Spec.DesiredState)
	}
	for range 60 {
		instance, after := x.reconcile()
		if instance == nil {
			return
		}
		x.clock.Step(after)
	}
	t.Errorf("it is not given back: %+v", x.instance().Status)
}

func TestANodeIsNotBoundToAnInstanceOfWhichSomethingElseIsWanted(t *testing.T) {
	for name, leaves := range map[string]bool{"its Machine is deleted meanwhile": true, "nothing happens meanwhile": false} {
		t.Run(name, func(t *testing.T) {
			instance := ofMachine()
			x := newTrial(t, registered())
			instance.Status.NodeRef = &v1alpha1.NodeReference{Name: machine, Confirmed: true}
			x.create(instance)
			s := x.scope(x.instance())
			s.Cluster = *x.facts
			if leaves {
				x.change(x.instance(), leave(v1alpha1.ReasonMachineDeleting))
				s.Instance.Status.Registration = "written" // what the API server returns has the later spec
				if err := x.rooms().status.Patch(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			o := x.rooms().join.run(t.Context(), s)
			if stopped := o != nil && o.Outcome == obstacle.Wait; stopped != leaves || !leaves && o != nil {
				t.Errorf("in the way is %+v", o)
			}
			if bound := x.node().Annotations[v1alpha1.AnnotationInstance] != ""; bound == leaves {
				t.Errorf("it is bound: %t", bound)
			}
		})
	}
}
