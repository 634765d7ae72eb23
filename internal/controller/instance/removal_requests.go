package instance

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// deleteRequests deletes the certificate requests that were made for the instance.
func (r *Reconciler) deleteRequests(ctx context.Context, s *scope) error {
	requests := r.Clientset.CertificatesV1().CertificateSigningRequests()
	list, err := requests.List(ctx, metav1.ListOptions{LabelSelector: labelInstance + "=" + labelOf(s.instance.Name)})
	if err != nil {
		return fmt.Errorf("list CertificateSigningRequests of WindowsInstance %s: %w", s.instance.Name, err)
	}
	for _, request := range list.Items {
		if err := requests.Delete(ctx, request.Name, metav1.DeleteOptions{}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete CertificateSigningRequest %s: %w", request.Name, err)
		}
	}
	return nil
}

// kubeletSigners sign what a kubelet asks for itself: its renewals and its serving certificates.
var kubeletSigners = [...]string{certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName}

// forgetKubelet deletes the certificate requests that the kubelet has made of a Node that is gone. Those that the operator made for it have gone
// with the Node.
func (r *Reconciler) forgetKubelet(ctx context.Context, s *scope) *obstacle {
	ref := s.instance.Status.NodeRef
	if s.handedOver || ref == nil || !ref.Confirmed {
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
