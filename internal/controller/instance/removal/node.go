package removal

import (
	"context"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// ownershipFailure returns nil for a foreign Node, and an API result if the owner could not be determined.
func ownershipFailure(err error) *result.Result {
	if err == nil {
		return nil
	}
	return result.FromAPIError(v1alpha1.ConditionReady, "determine the owner of the Node", err)
}

// DeleteNode deletes the Node and the certificate requests of the instance. A Node that another instance has
// adopted is not deleted.
func (r *Removal) DeleteNode(ctx context.Context, s *scope.Scope) *result.Result {
	if err := r.Signer.DeleteRequests(ctx, s.Instance.Name); err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "delete certificate requests", err)
	}
	if s.NodeName() == "" {
		return nil
	}
	node, err := r.Nodes.Get(ctx, s.Instance)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node == nil {
		return nil
	}
	if own, err := r.Nodes.Owns(ctx, s, node); err != nil || !own {
		return ownershipFailure(err)
	}
	if err := r.Client.Delete(ctx, node, client.Preconditions{UID: &node.UID}); client.IgnoreNotFound(err) != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "delete the Node", err)
	}
	r.Events.Emit(status.NodeDeletedEvent(s.Instance, node))
	return nil
}

// DeleteInstance releases the disruption slot and deletes the instance.
func (r *Removal) DeleteInstance(ctx context.Context, s *scope.Scope) *result.Result {
	if err := r.Disruptor.Gate.Release(ctx, s.Instance.Name); err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "release the disruption slot of the node", err)
	}
	preconditions := client.Preconditions{UID: &s.Instance.UID}
	if err := r.Client.Delete(ctx, s.Instance, preconditions); client.IgnoreNotFound(err) != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "delete the WindowsInstance", err)
	}
	s.SkipStatusWrite, s.Deleted = true, true
	return nil
}

// kubeletSigners sign the requests of kubelets for client renewals and serving certificates.
var kubeletSigners = [...]string{certificatesv1.KubeAPIServerClientKubeletSignerName,
	certificatesv1.KubeletServingSignerName}

// DeleteKubeletRequests deletes the certificate requests of the kubelet of a deleted Node. Requests that the operator
// created were deleted with the Node.
func (r *Removal) DeleteKubeletRequests(ctx context.Context, s *scope.Scope) *result.Result {
	ref := s.Instance.Status.NodeRef
	if s.HostTransferred || ref == nil || !ref.Confirmed {
		return nil
	}
	node, err := r.Nodes.Get(ctx, s.Instance)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node != nil {
		return nil // the Node and its requests belong to another owner
	}
	for _, signer := range kubeletSigners {
		if err := r.Signer.DeleteRequestsOf(ctx, "system:node:"+ref.Name, signer); err != nil {
			return result.FromAPIError(v1alpha1.ConditionReady, "delete certificate requests", err)
		}
	}
	return nil
}

// transferPollInterval is the maximum time between checks of an instance that shares a host. Changes of the other
// instance requeue it earlier.
const transferPollInterval = time.Minute

// TransferSharedHost decides the fate of the host of an instance that is being removed. If the host is listed under a
// second address, or moved to a new one, the host and its node stay. In this case only the instance is
// deleted, after the other instance has adopted the Node.
func (r *Removal) TransferSharedHost(ctx context.Context, s *scope.Scope) *result.Result {
	instances, err := r.Nodes.Instances(ctx, s)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "list WindowsInstances", err)
	}
	node, err := r.Nodes.Get(ctx, s.Instance)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "read the Node", err)
	}
	switch fate, other := nodeidentity.FateOf(s.Instance, node, instances); fate {
	case nodeidentity.Unchanged:
		s.HostTransferred = true
		r.Events.Emit(status.HostSharedEvent(s.Instance, other))
	case nodeidentity.Inherited:
		return otherInstancePending(other, "that instance adopts the Node, and then this WindowsInstance is deleted.")
	case nodeidentity.Follows:
		return otherInstancePending(other, "that instance is also being removed, and restores the host first.")
	case nodeidentity.Restored:
	}
	return nil
}

// otherInstancePending returns the result of an instance that waits for the removal or adoption by another instance of
// the same host.
func otherInstancePending(other *v1alpha1.WindowsInstance, why string) *result.Result {
	return &result.Result{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonRemoving, Outcome: result.Wait, RequeueAfter: transferPollInterval,
		Message:    "The host also belongs to WindowsInstance " + other.Name + " (" + other.Spec.Address + "): " + why,
		NextAction: "The operator continues afterwards. If this takes long, check the status of WindowsInstance " + other.Name + ".",
	}
}
