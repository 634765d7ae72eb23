// Package orphan finds Windows nodes of the operator without a WindowsInstance: the instance was deleted, and
// no source recreates it. The package reports these nodes with an event of the Node and a metric, and changes
// neither Node nor host. The package creates no instance from a Node: the Node does not contain the user of the
// host, and may have been written by the host.
package orphan

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/metrics"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// A Node has no namespace, and its events are in the namespace default, where only a ClusterRole can grant a
// right to the operator.
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=windowsmachineconfig.openshift.io,namespace=system,resources=windowsinstances,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// GracePeriod is the time that a Node may lack an instance without a report. A source recreates an instance
// immediately, and after a start of the operator when its list is read.
const GracePeriod = time.Minute

// Reconciler reports the Nodes without an instance. Only one goroutine may use it.
type Reconciler struct {
	// Client reads from the manager's cache.
	Client client.Client
	// Namespace is the namespace of the operator.
	Namespace string
	Events    events.EventRecorder
	Clock     clock.PassiveClock

	// orphansByNode holds the Nodes without an instance, by name.
	orphansByNode map[string]orphan
}

// orphan is a Node without an instance.
type orphan struct {
	uid      types.UID
	since    time.Time
	reported bool
}

// Reconcile checks one Node.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := &corev1.Node{}
	err := r.Client.Get(ctx, request.NamespacedName, node)
	if apierrors.IsNotFound(err) {
		r.forgetNode(request.Name)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read Node %s: %w", request.Name, err)
	}
	keeper, err := r.keeperOf(ctx, node)
	if err != nil {
		return ctrl.Result{}, err
	}
	switch keeper {
	case nodeidentity.Orphaned:
		return ctrl.Result{RequeueAfter: r.reportOrphan(node)}, nil
	case nodeidentity.NotBoundYet:
		return ctrl.Result{RequeueAfter: GracePeriod}, nil
	}
	r.forgetNode(node.Name)
	return ctrl.Result{}, nil
}

// keeperOf first checks the instance named by the Node, which nearly always refers to the Node.
func (r *Reconciler) keeperOf(ctx context.Context, node *corev1.Node) (nodeidentity.Ownership, error) {
	named := &v1alpha1.WindowsInstance{}
	key := types.NamespacedName{Namespace: r.Namespace, Name: node.Annotations[v1alpha1.AnnotationInstance]}
	if key.Name != "" {
		err := r.Client.Get(ctx, key, named)
		if client.IgnoreNotFound(err) != nil {
			return nodeidentity.Owned, fmt.Errorf("read WindowsInstance %s of Node %s: %w", key.Name, node.Name, err)
		}
		if keeper := nodeidentity.OwnershipOf(node, []v1alpha1.WindowsInstance{*named}); keeper == nodeidentity.Owned {
			return keeper, nil
		}
	}
	var instances v1alpha1.WindowsInstanceList
	if err := r.Client.List(ctx, &instances, client.InNamespace(r.Namespace),
		client.UnsafeDisableDeepCopy); err != nil {
		return nodeidentity.Owned, fmt.Errorf("find the WindowsInstance of Node %s: %w", node.Name, err)
	}
	return nodeidentity.OwnershipOf(node, instances.Items), nil
}

// reportOrphan reports a Node once, after the grace period without an instance, and returns the delay until the next
// check.
func (r *Reconciler) reportOrphan(node *corev1.Node) time.Duration {
	now, known := r.Clock.Now(), r.orphansByNode[node.Name]
	if known.uid != node.UID {
		r.forgetNode(node.Name)
		known = orphan{uid: node.UID, since: now}
	}
	rest := GracePeriod - now.Sub(known.since)
	if rest <= 0 && !known.reported {
		known.reported = true
		metrics.NodesWithoutInstance.Inc()
		recorder.Emit(r.Events, nodeWithoutInstance(node, r.Namespace))
	}
	if r.orphansByNode == nil {
		r.orphansByNode = map[string]orphan{}
	}
	r.orphansByNode[node.Name] = known
	return max(rest, 0)
}

// forgetNode deletes the record of a Node that no longer exists or has an instance.
func (r *Reconciler) forgetNode(node string) {
	if r.orphansByNode[node].reported {
		metrics.NodesWithoutInstance.Dec()
	}
	delete(r.orphansByNode, node)
}
