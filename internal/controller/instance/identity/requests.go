package identity

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// DeleteRequests deletes the certificate requests that were created for the instance.
func (c Signer) DeleteRequests(ctx context.Context, instance string) error {
	requests := c.Clientset.CertificatesV1().CertificateSigningRequests()
	list, err := requests.List(ctx, metav1.ListOptions{LabelSelector: labelInstance + "=" + labelOf(instance)})
	if err != nil {
		return fmt.Errorf("list CertificateSigningRequests of WindowsInstance %s: %w", instance, err)
	}
	for _, request := range list.Items {
		if err := requests.Delete(ctx, request.Name, metav1.DeleteOptions{}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete CertificateSigningRequest %s: %w", request.Name, err)
		}
	}
	return nil
}

// DeleteRequestsOf deletes the requests of one user to one signer.
func (c Signer) DeleteRequestsOf(ctx context.Context, user, signer string) error {
	requests := c.Clientset.CertificatesV1().CertificateSigningRequests()
	list, err := requests.List(ctx,
		metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.signerName", signer).String()})
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

// HandleRejection deletes the certificate requests of an instance with an agent that still needs a certificate
// after receiving it, so that the next attempt requests a new one. It returns the result for the status.
func (c Signer) HandleRejection(ctx context.Context, s *scope.Scope, identity string) *result.Result {
	if err := c.DeleteRequests(ctx, s.Instance.Name); err != nil {
		return result.FromAPIError(v1alpha1.ConditionJoined, "delete the certificate request", err)
	}
	service := nodespec.Identity{Name: identity}.Service()
	o := &result.Result{
		Condition: v1alpha1.ConditionJoined, Reason: v1alpha1.ReasonCertificateRequestRefused, Outcome: result.ChangeFailed,
		Message:    "The agent rejected the certificate issued for service " + service + ".",
		NextAction: "At the next attempt, the operator requests a new certificate.",
	}
	if clock := support.SupportClock(s.Session.Clock); !clock.Allowed {
		o.Reason, o.RequeueAfter = clock.Reason, result.HostRecheckInterval
		o.Message += " " + clock.Message
		o.NextAction += " " + support.ClockRemedy
		s.Host.Facts = nil // the next attempt reads the host's time again
	}
	return o
}
