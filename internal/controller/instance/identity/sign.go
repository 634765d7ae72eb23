package identity

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy/certrequest"
)

const (
	// labelInstance is the label of a CertificateSigningRequest with the name of its WindowsInstance, as
	// encoded by labelOf.
	labelInstance = "windowsmachineconfig.openshift.io/instance"
	// signTimeout is the time limit for the cluster's signer before the operator retries later.
	signTimeout = 10 * time.Second
	// signPollInterval is the interval between checks for the signed certificate.
	signPollInterval = 50 * time.Millisecond
)

// Signer submits certificate requests of hosts to the cluster's signers.
type Signer struct {
	Clientset kubernetes.Interface
	Clock     clock.Clock
	Namespace string // of the operator
}

// Issue requests certificates for identities in a job, and returns the signed certificates by identity name. The
// CertificateSigningRequests record the signed content and the WindowsInstance. The function before is called
// before the job is requested.
func (c Signer) Issue(s *scope.Scope, wanted []nodespec.Identity, facts *plan.Facts, before hostjobs.Before) (map[string]string, *result.Result) {
	var input []string
	for _, identity := range wanted {
		if o := refuseRequest(identity, facts); o != nil {
			return nil, o
		}
		input = append(input, identity.Name, facts.IdentityOf(identity.Name).Request)
	}
	instance, node := s.Instance.Name, s.NodeName()
	show := &result.Result{Condition: v1alpha1.ConditionJoined, Reason: v1alpha1.ReasonInProgress, Outcome: result.Working, HoldsSlot: true,
		Step: "Sign", StatusDelay: signStatusDelay, Message: "The cluster signs certificates of the node.", NextAction: "The operator waits for the certificates."}
	key := hostjobs.Key{Kind: hostjobs.KindSign, Input: strings.Join(input, " ")}
	issued, pending, err := hostjobs.DoAfter(s.Host, key, show, before, func(ctx context.Context, _ *hostjobs.Handle) (map[string]string, error) {
		return c.SignAll(ctx, instance, node, wanted, facts)
	})
	if err != nil {
		return nil, result.FromAPIError(v1alpha1.ConditionJoined, "issue the certificate of Node "+node, err)
	}
	return issued, pending
}

// signStatusDelay is the delay before the status shows that the signer is working.
const signStatusDelay = 5 * time.Second

// SignAll obtains certificates for identities, if each request matches exactly its identity, and returns the
// certificates by identity name.
func (c Signer) SignAll(ctx context.Context, instance, node string, wanted []nodespec.Identity, facts *plan.Facts) (map[string]string, error) {
	issued := map[string]string{}
	for _, identity := range wanted {
		if o := refuseRequest(identity, facts); o != nil {
			return nil, &RefusedError{o}
		}
		certificate, err := c.signRequest(ctx, instance, node, []byte(facts.IdentityOf(identity.Name).Request), identity)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", identity.CommonName, err)
		}
		issued[identity.Name] = string(certificate)
	}
	return issued, nil
}

// RefusedError means that a request does not match exactly its identity.
type RefusedError struct{ Result *result.Result }

func (e *RefusedError) Error() string { return e.Result.Message }

// refuseRequest returns a result if the request of an identity does not match exactly that identity; nil
// otherwise.
func refuseRequest(identity nodespec.Identity, facts *plan.Facts) *result.Result {
	request := []byte(facts.IdentityOf(identity.Name).Request)
	if len(request) == 0 {
		return &result.Result{
			Condition: v1alpha1.ConditionJoined, Reason: v1alpha1.ReasonCertificateRequestRefused, Outcome: result.ChangeFailed,
			Message:    "The agent sent no certificate request for " + identity.CommonName + ".",
			NextAction: "The operator requests it again. Until then, no certificate is signed.",
		}
	}
	decision := certrequest.JudgeClient(request, certrequest.Identity{CommonName: identity.CommonName,
		Organization: identity.Organization})
	if !decision.Allowed {
		return &result.Result{
			Condition: v1alpha1.ConditionJoined, Reason: v1alpha1.ReasonCertificateRequestRefused,
			Outcome: result.ChangeFailed, Message: decision.Message,
			NextAction: "No certificate was issued. The operator's agent does not send such a request: check who has access to the host.",
		}
	}
	return nil
}

// signerOf returns the name of the signer for an identity. The cluster has a separate signer for kubelets.
func signerOf(identity nodespec.Identity) string {
	if identity.Name == "" {
		return certificatesv1.KubeAPIServerClientKubeletSignerName
	}
	return certificatesv1.KubeAPIServerClientSignerName
}

// signRequest submits and approves a request, and returns the certificate that the cluster's signer issues. The name of
// the CertificateSigningRequest is derived from the request, so that a second attempt finds the certificate of the
// first.
func (c Signer) signRequest(ctx context.Context, instance, node string, request []byte, identity nodespec.Identity) ([]byte, error) {
	sum := sha256.Sum256(request)
	name := "wmco-" + node + "-" + hex.EncodeToString(sum[:6])
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{labelInstance: labelOf(instance)}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: signerOf(identity),
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	requests := c.Clientset.CertificatesV1().CertificateSigningRequests()
	made, err := requests.Create(ctx, csr, metav1.CreateOptions{})
	existed := apierrors.IsAlreadyExists(err)
	if err != nil && !existed {
		return nil, fmt.Errorf("create CertificateSigningRequest %s: %w", name, err)
	}
	var certificate []byte
	justMade := !existed
	err = c.pollUntil(ctx, signPollInterval, signTimeout, func(ctx context.Context) (bool, error) {
		present, err := made, error(nil)
		if !justMade {
			present, err = requests.Get(ctx, name, metav1.GetOptions{})
		}
		justMade = false
		if err != nil {
			return false, fmt.Errorf("read CertificateSigningRequest %s: %w", name, err)
		}
		// The object may be from an earlier attempt, or from another client that has predicted the name.
		if isNew := !existed && made.UID == present.UID; !hasSubmittedContent(present, csr) || !isNew && !c.isCreatedByOperator(present) {
			return false, fmt.Errorf("CertificateSigningRequest %s already exists and was created by %s, not by the operator: delete it", name, present.Spec.Username)
		}
		if refused := describeRejection(present); refused != "" {
			return false, fmt.Errorf("CertificateSigningRequest %s was %s", name, refused)
		}
		if !isApproved(present) {
			present.Status.Conditions = append(present.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
				Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "RequestedOverPinnedConnection",
				Message: "The request came over the pinned SSH connection of WindowsInstance " + instance + ".",
			})
			present, err = requests.UpdateApproval(ctx, name, present, metav1.UpdateOptions{})
			if apierrors.IsConflict(err) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
		}
		certificate = present.Status.Certificate
		return len(certificate) > 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for the signed certificate: %w", err)
	}
	return certificate, nil
}

// pollUntil calls the given function at once and after each interval of the operator's clock, until the result is true
// or an error. The limit applies to the API server and is measured in real time.
func (c Signer) pollUntil(ctx context.Context, interval, limit time.Duration,
	ask func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		if done, err := ask(ctx); done || err != nil {
			return err
		}
		timer := c.Clock.NewTimer(interval)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// labelOf returns the name of an instance as a label value. Names of Machines may be longer than label
// values.
func labelOf(instance string) string {
	if len(instance) <= validation.LabelValueMaxLength {
		return instance
	}
	sum := sha256.Sum256([]byte(instance))
	return instance[:40] + "-" + hex.EncodeToString(sum[:8])
}

// isCreatedByOperator reports whether a request was created by a ServiceAccount of the operator's namespace: by this
// operator or its predecessor. A host also knows the request and therefore the name. Without this check, a request
// that the host or another client submitted would be approved at any time.
func (c Signer) isCreatedByOperator(request *certificatesv1.CertificateSigningRequest) bool {
	return strings.HasPrefix(request.Spec.Username, "system:serviceaccount:"+c.Namespace+":")
}

// hasSubmittedContent reports whether a request has the content that the operator submitted. The name is predictable,
// and no foreign content may be approved under it.
func hasSubmittedContent(present, made *certificatesv1.CertificateSigningRequest) bool {
	return bytes.Equal(present.Spec.Request, made.Spec.Request) && present.Spec.SignerName == made.Spec.SignerName &&
		slices.Equal(present.Spec.Usages, made.Spec.Usages) && present.Spec.ExpirationSeconds == nil &&
		present.Labels[labelInstance] == made.Labels[labelInstance]
}

func isApproved(csr *certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(csr.Status.Conditions,
		func(condition certificatesv1.CertificateSigningRequestCondition) bool {
			return condition.Type == certificatesv1.CertificateApproved
		})
}

func describeRejection(csr *certificatesv1.CertificateSigningRequest) string {
	for _, c := range csr.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateDenied:
			return "denied: " + c.Message
		case certificatesv1.CertificateFailed:
			return "not signed: " + c.Message
		}
	}
	return ""
}
