package instance

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
	"github.com/windows-machine-config/wmco/internal/policy/ownership"
)

// adoptMachineNode binds the Node that an operator before version 12 made of a Machine's host. The Machine API says whose it is, so that no
// connection is needed: the Machine may be about to be replaced.
func (r *Reconciler) adoptMachineNode(ctx context.Context, s *scope) *obstacle {
	if !s.ofMachine() {
		return nil
	}
	node, proof, err := s.olderNodeOfMachine(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionJoined, "find the Machine's Node", err)
	}
	if node == nil {
		return nil
	}
	if ref := s.instance.Status.NodeRef; ref == nil || ref.Name != node.Name {
		s.instance.Status.NodeRef = &v1alpha1.NodeReference{Name: node.Name}
		if err := s.patchStatus(ctx); err != nil {
			return apiObstacle(v1alpha1.ConditionJoined, "claim the node name", err)
		}
	}
	return s.adopt(ctx, node, nodename.OlderProof{Machine: proof})
}

// adoptNode binds the Node of an operator before version 12 whose name the instance has just been granted, before anything on the host is
// changed: from then on it counts as a node in service, which is drained first and waits for its turn.
func (r *Reconciler) adoptNode(ctx context.Context, s *scope) *obstacle {
	node, err := s.node(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionJoined, "read the Node", err)
	}
	if node == nil || !ownership.OlderNode(node) {
		return nil
	}
	proof, err := s.olderProof(ctx, node)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionJoined, "find out whose Node it is", err)
	}
	return s.adopt(ctx, node, proof)
}

// adopt binds the Node if it is that of the instance's host. The decision is made once more on what is bound: the Node may have come, or have
// become another, after the name was granted.
func (s *scope) adopt(ctx context.Context, node *corev1.Node, proof nodename.OlderProof) *obstacle {
	claim, err := s.claimOf(ctx, node, proof)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionJoined, "check the node name", err)
	}
	if decision := nodename.Grant(claim); !decision.Allowed {
		return s.notAdopted(decision)
	}
	if err := s.bindOlder(ctx, node); err != nil {
		return apiObstacle(v1alpha1.ConditionJoined, "bind the Node to this instance", err)
	}
	from := node.Annotations[v1alpha1.AnnotationVersion]
	s.instance.Status.NodeRef = &v1alpha1.NodeReference{Name: node.Name, UID: string(node.UID), Confirmed: true}
	s.instance.Status.Version = from
	s.emit(nodeTakenOver(s.instance, node))
	if err := s.patchStatus(ctx); err != nil {
		return apiObstacle(v1alpha1.ConditionJoined, "note that the Node was taken over", err)
	}
	s.pass(v1alpha1.ConditionJoined, "Node "+node.Name+" of an older version of the operator was taken over.")
	return nil
}

// notAdopted gives the name up, unless somebody else is to do so.
func (s *scope) notAdopted(decision policy.Decision) *obstacle {
	if decision.Passes {
		return &obstacle{
			condition: v1alpha1.ConditionJoined, reason: v1alpha1.ReasonWaiting, outcome: wait, keepsTurn: true, after: claimPoll,
			message: decision.Message, next: "The operator looks again in a second.",
		}
	}
	s.instance.Status.NodeRef = nil
	s.Hosts.Close(s.instance.Name)
	return &obstacle{
		condition: v1alpha1.ConditionJoined, reason: decision.Reason, message: decision.Message,
		next: "Host and Node are left as they are. Put in order what the message names; the operator then goes on by itself.",
	}
}

// bindOlder writes the instance's name on the Node, and nothing over what another has written there meanwhile.
func (s *scope) bindOlder(ctx context.Context, node *corev1.Node) error {
	after := node.DeepCopy()
	if s.byoh() {
		setAll(&after.Labels, map[string]string{v1alpha1.LabelWorker: "", v1alpha1.LabelBYOH: "true"})
	}
	s.keepLabels(after)
	setAll(&after.Annotations, map[string]string{
		v1alpha1.AnnotationInstance: s.instance.Name, v1alpha1.AnnotationTakenOverFrom: node.Annotations[v1alpha1.AnnotationVersion],
	})
	if key := s.instance.Status.HostKey; key != nil {
		setAll(&after.Annotations, map[string]string{v1alpha1.AnnotationHostKey: key.Key, v1alpha1.AnnotationHostKeyType: key.Type})
	}
	if err := s.Client.Patch(ctx, after, client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patch Node %s: %w", node.Name, err)
	}
	return nil
}

// isOlder reports whether a Node was taken over from an operator before version 12, and its host was not brought up to date since.
func isOlder(node *corev1.Node) bool {
	_, ok := node.Annotations[v1alpha1.AnnotationTakenOverFrom]
	return ok
}

// holdsOlder reports whether the host may have what an older operator has made, and no ledger that says so: its Node was taken over, and not
// brought up to date since.
func (s *scope) holdsOlder(ctx context.Context) (bool, error) {
	if s.nodeName() == "" {
		return false, nil
	}
	node, err := s.node(ctx)
	if err != nil || node == nil || !isOlder(node) {
		return false, err
	}
	return s.owns(ctx, node)
}

// dropOlderMarks takes from a Node that was brought up to date what an operator before version 12 had for itself: the version that its agent
// was to apply, the user name of the host, and its lock. Who was stopped while it had the lock has left the Node unschedulable.
func dropOlderMarks(node *corev1.Node) {
	for _, name := range []string{v1alpha1.AnnotationDesiredVersion, v1alpha1.AnnotationUsername, v1alpha1.AnnotationTakenOverFrom} {
		delete(node.Annotations, name)
	}
	if _, locked := node.Labels[v1alpha1.LabelUpgrading]; locked {
		delete(node.Labels, v1alpha1.LabelUpgrading)
		node.Spec.Unschedulable = false
	}
}

// keptNodeName is the name of the Node that a Machine's host has already; empty when there is none. It need not be the host's: the kubelet is
// told which one to use, and was by older operators.
func (s *scope) keptNodeName() string {
	if ref := s.instance.Status.NodeRef; s.ofMachine() && ref != nil && ref.Confirmed && ref.UID != "" {
		return ref.Name
	}
	return ""
}

// passWhatNodeSays takes over from the Node whether it is Ready, for a host that is not looked at.
func (s *scope) passWhatNodeSays(node *corev1.Node) {
	if isReady(node) {
		s.pass(v1alpha1.ConditionReady, "The node is Ready, as the version of the operator before this one has configured it.")
		return
	}
	since, message := notReadySince(node)
	s.passed[v1alpha1.ConditionReady] = metav1.Condition{
		Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodeNotReady,
		Message: fmt.Sprintf("Node %s is not Ready since %s: %s", node.Name, since.UTC().Format(time.RFC3339), message),
	}
}

// claimOf is the claim of the instance to a Node.
func (s *scope) claimOf(ctx context.Context, node *corev1.Node, proof nodename.OlderProof) (nodename.Claim, error) {
	var instances v1alpha1.WindowsInstanceList
	if err := s.Live.List(ctx, &instances, client.InNamespace(s.Namespace)); err != nil {
		return nodename.Claim{}, fmt.Errorf("list WindowsInstances: %w", err)
	}
	machines, err := s.machines(ctx)
	if err != nil {
		return nodename.Claim{}, err
	}
	return nodename.Claim{Instance: *s.instance, NodeName: node.Name, Node: node, Others: instances.Items, Machines: machines, Older: proof}, nil
}

// liveNode reads a Node from the API server; nil when it is not there.
func (s *scope) liveNode(ctx context.Context, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	err := s.Live.Get(ctx, types.NamespacedName{Name: name}, node)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Node %s: %w", name, err)
	}
	return node, nil
}
