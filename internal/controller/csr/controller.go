// Package csr decides on the certificate requests that the kubelets of Windows nodes create themselves.
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

// refusedRecheckInterval is the interval between checks of a refused request, because the operator's data about a
// host may have been outdated.
const refusedRecheckInterval = time.Minute

// ClusterSource provides the facts of the cluster, or the reason why the facts are unavailable.
type ClusterSource interface {
	Current() (nodespec.Cluster, error)
}

// Reconciler approves the serving certificates of known Windows nodes and the renewals of client certificates. It
// ignores requests of other nodes, leaves faulty requests of managed nodes pending with an event on the
// WindowsInstance, and denies provably forged requests. The first client certificate of a node is requested over
// the pinned connection to the host.
type Reconciler struct {
	// Client reads CertificateSigningRequests as limited by Cached, WindowsInstances and Windows Nodes.
	Client client.Client
	// Live reads the API server, because foreign nodes are not cached.
	Live      client.Reader
	Clientset kubernetes.Interface
	Namespace string
	Events    events.EventRecorder
	Cluster   ClusterSource
	Clock     clock.PassiveClock

	tracker  requestTracker
	lastRead clusterRead
}

// Reconcile decides on one request.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := r.Client.Get(ctx, request.NamespacedName, csr); err != nil {
		r.tracker.forgetRequest(request.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !isUndecided(csr) {
		r.tracker.forgetRequest(request.Name)
		return ctrl.Result{}, nil
	}
	var list v1alpha1.WindowsInstanceList // shared with the cache: must not be modified
	if err := r.Client.List(ctx, &list, client.InNamespace(r.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("list WindowsInstances: %w", err)
	}
	instance := certrequest.Requester(*csr, list.Items)
	if instance == nil {
		r.tracker.forgetRequest(csr.Name)
		return ctrl.Result{}, nil
	}
	node, now := instance.Status.NodeRef.Name, r.Clock.Now()
	if outdated, err := r.isSuperseded(ctx, csr, node); err != nil || outdated {
		r.tracker.forgetRequest(csr.Name)
		return ctrl.Result{}, err
	}
	if wait := r.tracker.refusalDelay(node, now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	first := r.tracker.recordFirstSeen(csr.Name, now)
	if registered, err := r.hasRegisteredNode(ctx, instance); err != nil || !registered {
		return ctrl.Result{}, err // the Node or the bound instance triggers a reconcile
	}
	present, at, err := r.readClusterIdentities(ctx, list.Items)
	if err != nil {
		return ctrl.Result{}, err
	}
	decision := certrequest.Judge(*csr, certrequest.FactsOf(instance, present))
	if decision.Outcome != certrequest.Approve && at.Before(first) {
		// The requested names may have been added after the cluster was read.
		return ctrl.Result{RequeueAfter: at.Add(clusterReadTTL).Sub(now)}, nil
	}
	switch decision.Outcome {
	case certrequest.Approve:
		r.tracker.forgetRequest(csr.Name)
		_, err := r.write(ctx, csr, decision, certificatesv1.CertificateApproved, "WindowsNode")
		return ctrl.Result{}, err
	case certrequest.Deny:
		r.tracker.countRefusal(node, now)
		r.tracker.forgetRequest(csr.Name)
		return ctrl.Result{}, r.denyRequest(ctx, csr, instance, decision)
	case certrequest.Refuse:
		r.tracker.countRefusal(node, now)
		r.reportPending(ctx, csr, instance, decision)
		return ctrl.Result{RequeueAfter: refusedRecheckInterval}, nil
	}
	return ctrl.Result{}, nil // foreign, or the Node was deleted: a new Node triggers a reconcile
}

func (r *Reconciler) denyRequest(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	instance *v1alpha1.WindowsInstance, decision certrequest.Decision) error {
	written, err := r.write(ctx, csr, decision, certificatesv1.CertificateDenied, "ForgedRequest")
	if !written || err != nil {
		return err
	}
	log.FromContext(ctx).Info("certificate request denied", "signer", csr.Spec.SignerName, "check", decision.Check,
		"message", decision.Message)
	r.Events.Eventf(instance, csr, corev1.EventTypeWarning, "CertificateRequestForged", "Deny",
		"CertificateSigningRequest %s was denied: %s", csr.Name, decision.Message)
	return nil
}

// write writes a decision to the request, unless another client has decided meanwhile: other clients approve
// renewals, too. The request is read first, because the cached object is incomplete. The judged data of a request
// does not change while the UID is the same.
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
	case present.UID != csr.UID || !isUndecided(present):
		return false, nil
	}
	present.Status.Conditions = append(present.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: decision.Message,
	})
	_, err = requests.UpdateApproval(ctx, csr.Name, present, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) && r.isAlreadyDecided(ctx, csr.Name) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("write %s into CertificateSigningRequest %s of Node %s: %w", kind, csr.Name,
			decision.NodeName, err)
	}
	return true, nil
}

// isAlreadyDecided reports whether another client has decided meanwhile.
func (r *Reconciler) isAlreadyDecided(ctx context.Context, name string) bool {
	csr, err := r.Clientset.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
	return err == nil && !isUndecided(csr)
}
