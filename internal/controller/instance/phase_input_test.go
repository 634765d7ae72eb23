package instance

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// unread is a ClusterSource that has no response yet.
type unread struct{}

func (unread) Current() (nodespec.Cluster, error) {
	return nodespec.Cluster{}, errors.New("it was not read yet: the API server is away")
}

func TestInput_UnreadClusterReportedOnNewHosts(t *testing.T) {
	t.Run("a host that nothing is known of waits for it", func(t *testing.T) {
		x := newTrial(t, machineInstance())
		x.Cluster = unread{}
		instance, _ := x.reconcile()
		condition := expectCondition(t, instance, v1alpha1.ConditionSupported, metav1.ConditionFalse, v1alpha1.ReasonInProgress)
		if !strings.Contains(condition.Message, "the API server is away") ||
			instance.Status.Summary != v1alpha1.ReasonInProgress {
			t.Errorf("the summary is %s, the message %q", instance.Status.Summary, condition.Message)
		}
		if events := x.popEvents(); len(events) > 0 || x.countDials() > 0 {
			t.Errorf("%d connections; the events are %q", x.countDials(), events)
		}
		x.Cluster = x
		next := ""
		x.server = func(context.Context) (net.Conn, error) {
			x.clock.Step(time.Minute) // a slow connection
			for range 60_000 {
				if next = x.getInstance().Status.NextAction; strings.Contains(next, "connects to") {
					break
				}
				time.Sleep(time.Millisecond)
			}
			return nil, errors.New("it is off")
		}
		if x.reconcile(); !strings.Contains(next, "connects to "+instance.Spec.Address) {
			t.Errorf("while the host is contacted, what happens next is %q", next)
		}
	})
	t.Run("one that has a status keeps it", func(t *testing.T) {
		x := newTrial(t, machineInstance())
		x.host.switchOff(true)
		before, _ := x.reconcile()
		x.Cluster = unread{}
		if after, _ := x.reconcile(); before.Status.Summary == "" || after.ResourceVersion != before.ResourceVersion {
			t.Errorf("the summary was %q and is %q", before.Status.Summary, after.Status.Summary)
		}
	})
}

// watchNextAction calls told with the next action whenever it is written to a status. An error of told is the
// response to the write.
func (x *trial) watchNextAction(check func(next string) error) {
	x.t.Helper()
	api, ok := x.Client.(client.WithWatch)
	if !ok {
		x.t.Fatalf("it is a %T", x.Client)
	}
	x.Client = interceptor.NewClient(api, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, of string, object client.Object, patch client.Patch,
			options ...client.SubResourcePatchOption) error {
			if instance, ok := object.(*v1alpha1.WindowsInstance); ok {
				if err := check(instance.Status.NextAction); err != nil {
					return err
				}
			}
			return c.SubResource(of).Patch(ctx, object, patch, options...)
		},
	})
}

func TestConnect_ProgressWrittenOnlyIfSlow(t *testing.T) {
	x := newTrial(t, machineInstance())
	connecting := 0
	x.watchNextAction(func(next string) error {
		if strings.Contains(next, "connects to") {
			connecting++
		}
		return nil
	})
	if instance, _ := x.reconcile(); connecting > 0 || instance.Status.HostKey == nil {
		t.Errorf("of a host that answers at once it is written %d times; its key is %v", connecting, instance.Status.HostKey)
	}
}

func TestConnect_ContinuesIfProgressWriteFails(t *testing.T) {
	x := newTrial(t, machineInstance())
	refused := make(chan struct{})
	refuse := sync.OnceFunc(func() { close(refused) })
	x.watchNextAction(func(next string) error {
		if strings.Contains(next, "connects to") {
			refuse()
			return errors.New("the API server is busy")
		}
		return nil
	})
	x.server = func(ctx context.Context) (net.Conn, error) {
		x.clock.Step(time.Minute) // a slow connection
		select {
		case <-refused:
		case <-time.After(time.Minute):
			t.Error("nothing was written")
		}
		return x.host.dialHost(ctx, "tcp")
	}
	// The host has no agent, which shows that the reconcile continued.
	if instance, _ := x.reconcile(); instance.Status.HostKey == nil || instance.Status.Summary != string(remote.ReasonSessionRejected) {
		t.Errorf("it is %s, its key %v", instance.Status.Summary, instance.Status.HostKey)
	}
}

// unreadable is a ClusterSource without a readable configuration of the workers.
type unreadable struct{}

func (unreadable) Current() (nodespec.Cluster, error) {
	return nodespec.Cluster{}, &cluster.Error{Object: "MachineConfig rendered-worker-1", Message: "it does not exist."}
}

// R-100, D-3
func TestInput_UnreadableWorkerConfigChangesNoHost(t *testing.T) {
	t.Run("a host that waits to become a node says what is missing, and is not contacted", func(t *testing.T) {
		x := newTrial(t, machineInstance())
		x.Cluster = unreadable{}
		instance, _ := x.reconcile()
		condition := expectCondition(t, instance, v1alpha1.ConditionSupported, metav1.ConditionFalse,
			v1alpha1.ReasonClusterConfigurationInvalid)
		if !strings.Contains(condition.Message, "MachineConfig rendered-worker-1") || instance.Status.NextAction == "" {
			t.Errorf("the message is %q, next is %q", condition.Message, instance.Status.NextAction)
		}
		if events := x.popEvents(); len(events) != 1 ||
			!strings.Contains(events[0], "Warning "+v1alpha1.ReasonClusterConfigurationInvalid) {
			t.Errorf("the events are %q", events)
		}
		if x.countDials() > 0 {
			t.Errorf("%d connections", x.countDials())
		}
		x.Cluster = x
		x.host.switchOff(true)
		if x.reconcile(); x.countDials() == 0 {
			t.Error("the host is not contacted when the configuration is there again")
		}
	})
	t.Run("a node goes on as it is, whatever else has changed", func(t *testing.T) {
		x := newTrial(t)
		x.asNode(machineInstance(), x.key.Hash())
		x.Version, x.Cluster = "2.0.0", unreadable{}
		node := x.getNode()
		instance, _ := x.reconcile()
		if after := x.getNode(); x.countDials() > 0 || after.ResourceVersion != node.ResourceVersion {
			t.Errorf("%d connections; the Node was %+v and is %+v", x.countDials(), node.Annotations, after.Annotations)
		}
		expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	})
}
