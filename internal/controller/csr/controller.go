// Package csr approves the certificates that the kubelets of Windows nodes ask for themselves.
package csr

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// +kubebuilder:rbac:groups=certificates.k8s.io,resources=certificatesigningrequests,verbs=get;list;watch
// +kubebuilder:rbac:groups=certificates.k8s.io,resources=certificatesigningrequests/approval,verbs=update
// +kubebuilder:rbac:groups=certificates.k8s.io,resources=signers,resourceNames=kubernetes.io/kubelet-serving,verbs=approve
// +kubebuilder:rbac:groups=machine.openshift.io,resources=machines,verbs=get;list

// refusedRecheck is how often a refused request is looked at again: what the operator knows of a host may have been behind.
const refusedRecheck = time.Minute

// ClusterSource knows the cluster, or why it cannot be read.
type ClusterSource interface {
	Current() (nodespec.Cluster, error)
}

// Reconciler approves serving certificates of known Windows nodes. What is not ours is left alone; what is ours and not right is left
// pending, with an event on the WindowsInstance.
type Reconciler struct {
	Client client.Client
	// Live reads the API server: nodes that are not ours are not cached.
	Live      client.Reader
	Clientset kubernetes.Interface
	Namespace string
	Events    events.EventRecorder
	Cluster   ClusterSource

	// told is what was last said of a request that is left pending, by its name, so that it is said once. Only one goroutine uses it.
	told map[string]string
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("csr").
		For(&certificatesv1.CertificateSigningRequest{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			csr, ok := o.(*certificatesv1.CertificateSigningRequest)
			return ok && csr.Spec.SignerName == certificatesv1.KubeletServingSignerName && len(csr.Status.Conditions) == 0
		}))).
		Complete(r)
}

// Reconcile decides on one request.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := r.Client.Get(ctx, request.NamespacedName, csr); err != nil {
		delete(r.told, request.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if len(csr.Status.Conditions) > 0 {
		delete(r.told, request.Name)
		return ctrl.Result{}, nil
	}
	if csr.Spec.SignerName != certificatesv1.KubeletServingSignerName {
		return ctrl.Result{}, nil
	}
	known, err := r.knowledge(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	decision := policy.ApproveServingRequest(*csr, known.nodes)
	instance := known.instances[decision.NodeName]
	if decision.Outcome == policy.Refuse && instance != nil {
		if err := r.addCloud(ctx, known, instance); err != nil {
			return ctrl.Result{}, err
		}
		decision = policy.ApproveServingRequest(*csr, known.nodes)
	}
	if decision.Outcome == policy.Refuse {
		r.tell(ctx, csr, instance, decision)
		return ctrl.Result{RequeueAfter: refusedRecheck}, nil
	}
	delete(r.told, csr.Name)
	if decision.Outcome == policy.NotOurs {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.approve(ctx, csr, decision)
}

// tell says why a request is left pending, unless the same was said of it before.
func (r *Reconciler) tell(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, instance *v1alpha1.WindowsInstance, decision policy.RequestDecision) {
	if r.told[csr.Name] == decision.Message {
		return
	}
	if r.told == nil {
		r.told = map[string]string{}
	}
	r.told[csr.Name] = decision.Message
	log.FromContext(ctx).Info("serving certificate request left pending", "reason", decision.Reason, "message", decision.Message)
	if instance != nil {
		r.Events.Eventf(instance, csr, corev1.EventTypeWarning, "ServingCertificateRefused", "Approve",
			"CertificateSigningRequest %s is left pending: %s", csr.Name, decision.Message)
	}
}

func (r *Reconciler) approve(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, decision policy.RequestDecision) error {
	approved := csr.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "WindowsNode", Message: decision.Message,
	})
	_, err := r.Clientset.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, csr.Name, approved, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) && r.decided(ctx, csr.Name) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("approve CertificateSigningRequest %s of Node %s: %w", csr.Name, decision.NodeName, err)
	}
	return nil
}

// decided tells whether somebody else has decided in the meantime.
func (r *Reconciler) decided(ctx context.Context, name string) bool {
	csr, err := r.Clientset.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
	return err == nil && len(csr.Status.Conditions) > 0
}
