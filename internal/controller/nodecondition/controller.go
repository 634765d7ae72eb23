// Package nodecondition watches the Node condition WindowsConfiguration. With this condition, the agent of a
// Windows node reports whether the host matches the NodeSpec. The package converts changes into events and a
// metric, and sets the condition to Unknown while the agent is silent. The package makes no decisions, because
// the host controls its condition.
package nodecondition

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/metrics"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes/status,verbs=patch
// +kubebuilder:rbac:groups=windowsmachineconfig.openshift.io,namespace=system,resources=windowsinstances,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,namespace=system,resources=events,verbs=create;patch

// HeartbeatTimeout is the duration without a write of an agent until its condition becomes Unknown. An agent writes
// every five minutes.
const HeartbeatTimeout = 15 * time.Minute

// conflictDelay is the delay before the retry after a conflict with another writer of the Node.
const conflictDelay = 5 * time.Second

// Reconciler watches the condition of each Windows node that is bound to a WindowsInstance. Only one goroutine
// may use it.
type Reconciler struct {
	// Client reads from the manager's cache.
	Client client.Client
	// Namespace is the namespace of the operator.
	Namespace string
	Events    events.EventRecorder
	Clock     clock.WithTicker

	// heartbeatsByNode holds the last heartbeat of the agent by the name of the Node.
	heartbeatsByNode map[string]agentHeartbeat
}

// agentHeartbeat is a heartbeat that the operator has received. The host's clock may be wrong, so the heartbeat is
// only compared with the next heartbeat, and the silence is measured by the operator's clock.
type agentHeartbeat struct {
	node      types.UID
	heartbeat metav1.Time
	received  time.Time
	// status is the status of the Node in the metric.
	status corev1.ConditionStatus
}

// Reconcile checks the heartbeat of one Node.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := &corev1.Node{}
	err := r.Client.Get(ctx, request.NamespacedName, node)
	if apierrors.IsNotFound(err) || err == nil && !hasAgent(node) {
		r.forgetNode(request.Name)
		metrics.RepairsReported.Forget(request.Name)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read Node %s: %w", request.Name, err)
	}
	now, condition := r.Clock.Now(), Of(node)
	last := r.recordHeartbeat(node, condition, now)
	if rest := HeartbeatTimeout - now.Sub(last.received); rest > 0 {
		return ctrl.Result{RequeueAfter: rest}, nil
	}
	if condition != nil && condition.Status == corev1.ConditionUnknown {
		return ctrl.Result{}, nil // the next heartbeat is an event
	}
	err = r.setUnknown(ctx, node, condition, last.received)
	if apierrors.IsConflict(err) {
		// Another client has written to the Node, possibly not the agent.
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// hasAgent reports whether an agent of this operator maintains the host of a Node. A Node adopted from a legacy
// operator has no such agent until its host is configured.
func hasAgent(node *corev1.Node) bool {
	_, legacy := node.Annotations[v1alpha1.AnnotationTakenOverFrom]
	return node.Annotations[v1alpha1.AnnotationInstance] != "" && !legacy
}

// recordHeartbeat records the condition, and returns the last heartbeat of the agent. After a restart of the
// operator, the full HeartbeatTimeout starts again for each agent.
func (r *Reconciler) recordHeartbeat(node *corev1.Node, condition *corev1.NodeCondition, now time.Time) agentHeartbeat {
	sign := agentHeartbeat{node: node.UID, received: now, status: statusOf(condition)}
	if condition != nil {
		sign.heartbeat = condition.LastHeartbeatTime
	}
	last, known := r.heartbeatsByNode[node.Name]
	if known && last.node == sign.node && last.heartbeat.Equal(&sign.heartbeat) {
		sign.received = last.received
	}
	r.forgetNode(node.Name)
	if r.heartbeatsByNode == nil {
		r.heartbeatsByNode = map[string]agentHeartbeat{}
	}
	r.heartbeatsByNode[node.Name] = sign
	metrics.NodesConfiguration.Of(string(sign.status)).Inc()
	metrics.RepairsReported.Of(node.Name).Add(0) // the first repair is an increase, too
	return sign
}

// forgetNode deletes the record of a Node that no longer exists or is not owned by the operator.
func (r *Reconciler) forgetNode(node string) {
	if last, known := r.heartbeatsByNode[node]; known {
		metrics.NodesConfiguration.Of(string(last.status)).Dec()
		delete(r.heartbeatsByNode, node)
	}
}

// setUnknown sets the condition to Unknown. A concurrent write of the agent takes precedence.
func (r *Reconciler) setUnknown(ctx context.Context, node *corev1.Node, present *corev1.NodeCondition,
	seen time.Time) error {
	unknown := corev1.NodeCondition{
		Type: nodespec.ConditionConfiguration, Status: corev1.ConditionUnknown, Reason: nodespec.ConfigurationAgentSilent,
		Message: fmt.Sprintf("The agent on the host has not written this condition for %d minutes. "+
			"Check the service %s on the host, and whether the host reaches the API server.", int(r.Clock.Since(seen).Minutes()),
			nodespec.ServiceAgent),
		LastTransitionTime: metav1.NewTime(r.Clock.Now()),
	}
	if present != nil {
		unknown.LastHeartbeatTime = present.LastHeartbeatTime
	}
	after := node.DeepCopy()
	if condition := Of(after); condition != nil {
		*condition = unknown
	} else {
		after.Status.Conditions = append(after.Status.Conditions, unknown)
	}
	patch := client.StrategicMergeFrom(node, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, after, patch); err != nil {
		return fmt.Errorf("set condition %s of Node %s to Unknown after the timeout of the agent: %w",
			unknown.Type, node.Name, err)
	}
	return nil
}

// Of returns the Node's condition WindowsConfiguration, or nil if the Node has none.
func Of(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == nodespec.ConditionConfiguration {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}
