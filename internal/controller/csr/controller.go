// Package csr decides on the certificates that the kubelets of Windows nodes request themselves.
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
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/certrequest"
)

// +kubebuilder:rbac:groups=certificates.k8s.io,resources=certificatesigningrequests,verbs=get;list;watch
// +kubebuilder:rbac:groups=certificates.k8s.io,resources=certificatesigningrequests/approval,verbs=update
// +kubebuilder:rbac:groups=certificates.k8s.io,resources=signers,resourceNames=kubernetes.io/kubelet-serving;kubernetes.io/kube-apiserver-client-kubelet,verbs=approve
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=machine.openshift.io,resources=machines,verbs=list

// refusedRecheck is how often a refused request is looked at again: what the operator knows of a host may have been
// behind.
const refusedRecheck = time.Minute

// ClusterSource knows the cluster, or why it cannot be read.
type ClusterSource interface {
	Current() (nodespec.Cluster, error)
}

// Reconciler approves the serving certificates of known Windows nodes and the renewals of their client certificates. It
// leaves requests of other nodes alone, leaves a faulty request of ours pending, with an event on the WindowsInstance,
// and denies a provably forged one. The first client certificate of a node is requested over the pinned connection of
// its host.
type Reconciler struct {
	// Client reads CertificateSigningRequests as Cached says, WindowsInstances and Windows Nodes.
	Client client.Client
	// Live reads the API server: nodes that are not ours are not cached.
	Live      client.Reader
	Clientset kubernetes.Interface
	Namespace string
	Events    events.EventRecorder
	Cluster   ClusterSource
	Clock     clock.PassiveClock

	memory  memory
	reading reading
}

// Reconcile decides on one request.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := r.Client.Get(ctx, request.NamespacedName, csr); err != nil {
		r.memory.forget(request.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !undecided(csr) {
		r.memory.forget(request.Name)
		return ctrl.Result{}, nil
	}
	var list v1alpha1.WindowsInstanceList // shared with the cache: nothing is written to it
	if err := r.Client.List(ctx, &list, client.InNamespace(r.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("list WindowsInstances: %w", err)
	}
	instance := certrequest.Requester(*csr, list.Items)
	if instance == nil {
		r.memory.forget(csr.Name)
		return ctrl.Result{}, nil
	}
	node, now := instance.Status.NodeRef.Name, r.Clock.Now()
	if outdated, err := r.outdated(ctx, csr, node); err != nil || outdated {
		r.memory.forget(csr.Name)
		return ctrl.Result{}, err
	}
	if wait := r.memory.wait(node, now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	first := r.memory.see(csr.Name, now)
	if registered, err := r.registered(ctx, instance); err != nil || !registered {
		return ctrl.Result{}, err // the Node wakes it, or the instance that is bound to it
	}
	present, at, err := r.present(ctx, list.Items)
	if err != nil {
		return ctrl.Result{}, err
	}
	decision := certrequest.Judge(*csr, certrequest.FactsOf(instance, present))
	if decision.Outcome != certrequest.Approve && at.Before(first) {
		// What it asks for may have come after the cluster was read.
		return ctrl.Result{RequeueAfter: at.Add(sharedFor).Sub(now)}, nil
	}
	switch decision.Outcome {
	case certrequest.Approve:
		r.memory.forget(csr.Name)
		_, err := r.write(ctx, csr, decision, certificatesv1.CertificateApproved, "WindowsNode")
		return ctrl.Result{}, err
	case certrequest.Deny:
		r.memory.refused(node, now)
		r.memory.forget(csr.Name)
		return ctrl.Result{}, r.deny(ctx, csr, instance, decision)
	case certrequest.Refuse:
		r.memory.refused(node, now)
		r.tell(ctx, csr, instance, decision)
		return ctrl.Result{RequeueAfter: refusedRecheck}, nil
	}
	return ctrl.Result{}, nil // not ours, or the Node went meanwhile: the next one wakes it
}

func (r *Reconciler) deny(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	instance *v1alpha1.WindowsInstance, decision certrequest.Decision) error {
	written, err := r.write(ctx, csr, decision, certificatesv1.CertificateDenied, "ForgedRequest")
	if !written || err != nil {
		return err
	}
	log.FromContext(ctx).Info("certificate request denied", "signer", csr.Spec.SignerName, "check", decision.Check,
		"message", decision.Message)
	r.Events.Eventf(instance, csr, corev1.EventTypeWarning, "CertificateRequestForged", "Deny",
		"CertificateSigningRequest %s is denied: %s", csr.Name, decision.Message)
	return nil
}

// write writes a decision into the request, unless somebody else has decided in the meantime: others approve renewals,
// too. The cache has not all that the API server would have written back; what it has been judged by does not change as
// long as the request is this one.
func (r *Reconciler) write(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	decision certrequest.Decision,
	kind certificatesv1.RequestConditionType, reason string,
) (written bool, err error) {
	requests := r.Clientset.CertificatesV1().CertificateSigningRequests()
	present, err := requests.Get(ctx, csr.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read CertificateSigningRequest %s of Node %s: %w", csr.Name, decision.NodeName, err)
	case present.UID != csr.UID || !undecided(present):
		return false, nil
	}
	present.Status.Conditions = append(present.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: decision.Message,
	})
	_, err = requests.UpdateApproval(ctx, csr.Name, present, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) && r.decided(ctx, csr.Name) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("write %s into CertificateSigningRequest %s of Node %s: %w", kind, csr.Name,
			decision.NodeName, err)
	}
	return true, nil
}

// decided reports whether somebody else has decided in the meantime.
func (r *Reconciler) decided(ctx context.Context, name string) bool {
	csr, err := r.Clientset.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
	return err == nil && !undecided(csr)
}
