package machines

import (
	"context"
	"io"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/drain"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

// newDrainHelper returns the drain helper of `kubectl drain --ignore-daemonsets --delete-emptydir-data`.
func (l lab) newDrainHelper(ctx context.Context) *drain.Helper {
	l.Helper()
	clients, err := kubernetes.NewForConfig(l.Config)
	l.requireNoError(err)
	return &drain.Helper{
		Ctx: ctx, Client: clients, GracePeriodSeconds: -1, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
		Out: io.Discard, ErrOut: os.Stderr,
	}
}

// cordonByHand cordons the node of a Machine as `kubectl cordon` does.
func (l lab) cordonByHand(name string) {
	l.Helper()
	l.requireNoError(drain.RunCordonOrUncordon(l.newDrainHelper(l.Context()), l.nodeOf(name), true))
}

// drainByHand drains the node of a Machine as `kubectl drain` does.
func (l lab) drainByHand(w *e2e.Workload, name string) {
	l.Helper()
	node := l.nodeOf(name)
	if len(w.PodsOnNode(l.T, node.Name)) == 0 {
		l.Fatalf("node %s has no pods: this test shows nothing", node.Name)
	}
	l.inTime(func(ctx context.Context) error {
		helper := l.newDrainHelper(ctx)
		if err := drain.RunCordonOrUncordon(helper, node, true); err != nil {
			return err
		}
		return drain.RunNodeDrain(helper, node.Name)
	})
	if left := w.PodsOnNode(l.T, node.Name); len(left) > 0 {
		l.Errorf("drained, the node has %d pods", len(left))
	}
}

// checkCordoned checks that the node of a Machine is unschedulable and not marked as cordoned by the operator.
func (l lab) checkCordoned(name string) {
	l.Helper()
	node := l.nodeOf(name)
	if _, cordonedByOperator := node.Annotations[v1alpha1.AnnotationCordoned]; cordonedByOperator || !node.Spec.Unschedulable {
		l.Errorf("the node that a user has made unschedulable: unschedulable %t, annotations %v",
			node.Spec.Unschedulable, node.Annotations)
	}
}

// machineOf returns the name of a node's Machine.
func (l lab) machineOf(node string) string {
	l.Helper()
	machines, err := l.Machines(l.Context(), "")
	l.requireNoError(err)
	for _, m := range machines {
		if m.Status.NodeRef != nil && m.Status.NodeRef.Name == node {
			return m.Name
		}
	}
	l.Fatalf("node %s has no Machine", node)
	return ""
}

// connectionCount returns the number of connections to a host.
func connectionCount(h *testenv.Host) int { return h.Machine().Journal().Count(fake.KindConnection) }
