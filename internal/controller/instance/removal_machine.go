package instance

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// lateNodeLimit is how long after the end of its Machine a kubelet's last request, to register its Node, may still arrive.
const lateNodeLimit = 10 * time.Second

// disconnect ends what goes on with a host that is gone with its Machine. The Machine API has drained the node; there is nothing to be
// given back, and a pause has nothing to hold up.
func (r *Reconciler) disconnect(ctx context.Context, s *scope) *obstacle {
	r.Hosts.Close(s.instance.Name)
	return s.leaveGate(ctx)
}

// awaitLateNode waits for the Node of a kubelet that could register it until its host was gone: it may have had its certificate, and no
// Node was seen yet. One that appears is deleted by the phase before this one.
func (r *Reconciler) awaitLateNode(_ context.Context, s *scope) *obstacle {
	ref := s.instance.Status.NodeRef
	if ref == nil || !ref.Confirmed || ref.UID != "" {
		return nil
	}
	rest := lateNodeLimit - r.Clock.Since(s.session.waitingSince("a late Node", r.Clock.Now()))
	if rest <= 0 {
		return nil
	}
	return &obstacle{
		condition: v1alpha1.ConditionReady, reason: v1alpha1.ReasonRemoving, waiting: true, after: rest,
		message: "The Machine is gone. Its kubelet was about to register Node " + ref.Name + ", which would be left behind.",
		next:    "The operator looks for that Node for " + lateNodeLimit.String() + ", and then deletes this instance.",
	}
}

// kubeletSigners sign what a kubelet asks for itself: its renewals and its serving certificates.
var kubeletSigners = [...]string{certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName}

// forgetKubelet deletes the certificate requests that the kubelet of a host has made which is gone. Those that the operator made for it
// have gone with the Node.
func (r *Reconciler) forgetKubelet(ctx context.Context, s *scope) *obstacle {
	ref := s.instance.Status.NodeRef
	if ref == nil || !ref.Confirmed {
		return nil
	}
	node, err := s.node(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node != nil {
		return nil // somebody else's, and so are the requests in its name
	}
	for _, signer := range kubeletSigners {
		if err := r.deleteRequestsOf(ctx, "system:node:"+ref.Name, signer); err != nil {
			return apiObstacle(v1alpha1.ConditionReady, "delete certificate requests", err)
		}
	}
	return nil
}

// deleteRequestsOf deletes the requests of one user to one signer.
func (r *Reconciler) deleteRequestsOf(ctx context.Context, user, signer string) error {
	requests := r.Clientset.CertificatesV1().CertificateSigningRequests()
	list, err := requests.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.signerName", signer).String()})
	if err != nil {
		return fmt.Errorf("list CertificateSigningRequests to %s: %w", signer, err)
	}
	for _, request := range list.Items {
		if request.Spec.Username != user {
			continue
		}
		if err := requests.Delete(ctx, request.Name, metav1.DeleteOptions{}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete CertificateSigningRequest %s: %w", request.Name, err)
		}
	}
	return nil
}
