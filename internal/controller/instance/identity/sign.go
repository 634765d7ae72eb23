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
	// labelInstance on a CertificateSigningRequest names the WindowsInstance that it was made for, as labelOf writes it.
	labelInstance = "windowsmachineconfig.openshift.io/instance"
	// signLimit is how long the cluster's signer may take before the operator looks again later.
	signLimit = 10 * time.Second
	// signPoll is the time between two looks at what it has signed.
	signPoll = 50 * time.Millisecond
)

// Signer has the cluster's signers sign the requests of hosts.
type Signer struct {
	Clientset kubernetes.Interface
	Clock     clock.Clock
	Namespace string // of the operator
}

// Issue has certificates signed for the requests of identities, in a job, and returns them by the names of the identities. What was
// signed, and for which WindowsInstance, the CertificateSigningRequests tell. before is called before the job is requested.
func (c Signer) Issue(s *scope.Scope, wanted []nodespec.Identity, facts *plan.Facts, before hostjobs.Before) (map[string]string, *result.Result) {
	var input []string
	for _, identity := range wanted {
		if o := refuseRequest(identity, facts); o != nil {
			return nil, o
		}
		input = append(input, identity.Name, facts.IdentityOf(identity.Name).Request)
	}
	instance, node := s.Instance.Name, s.NodeName()
	show := &result.Result{Condition: v1alpha1.ConditionJoined, Reason: v1alpha1.ReasonInProgress, Outcome: result.Working, KeepsTurn: true,
		Step: "Sign", Quiet: quietSigning, Message: "The cluster signs certificates of the node.", Next: "The operator waits for the certificates."}
	key := hostjobs.Key{Kind: hostjobs.KindSign, Input: strings.Join(input, " ")}
	issued, pending, err := hostjobs.DoAfter(s.Host, key, show, before, func(ctx context.Context, _ *hostjobs.Handle) (map[string]string, error) {
		return c.SignAll(ctx, instance, node, wanted, facts)
	})
	if err != nil {
		return nil, result.API(v1alpha1.ConditionJoined, "have the certificate of Node "+node+" signed", err)
	}
	return issued, pending
}

// quietSigning is how long the signer may take before the status shows it.
const quietSigning = 5 * time.Second

// SignAll has the requests of identities signed, if each asks for its identity and nothing else. It returns the certificates by the
// names of the identities.
func (c Signer) SignAll(ctx context.Context, instance, node string, wanted []nodespec.Identity, facts *plan.Facts) (map[string]string, error) {
	issued := map[string]string{}
	for _, identity := range wanted {
		if o := refuseRequest(identity, facts); o != nil {
			return nil, &RefusedError{o}
		}
		certificate, err := c.sign(ctx, instance, node, []byte(facts.IdentityOf(identity.Name).Request), identity)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", identity.CommonName, err)
		}
		issued[identity.Name] = string(certificate)
	}
	return issued, nil
}

// RefusedError means that a request does not ask for its identity and nothing else.
type RefusedError struct{ Result *result.Result }

func (e *RefusedError) Error() string { return e.Result.Message }

// refuseRequest returns the result of a request that does not ask for an identity and nothing else; nil for none.
func refuseRequest(identity nodespec.Identity, facts *plan.Facts) *result.Result {
	request := []byte(facts.IdentityOf(identity.Name).Request)
	if len(request) == 0 {
		return &result.Result{
			Condition: v1alpha1.ConditionJoined, Reason: v1alpha1.ReasonCertificateRequestRefused, Outcome: result.ChangeFailed,
			Message: "The agent sent no certificate request for " + identity.CommonName + ".",
			Next:    "No certificate was signed. The operator requests it again.",
		}
	}
	decision := certrequest.JudgeClient(request, certrequest.Identity{CommonName: identity.CommonName,
		Organization: identity.Organization})
	if !decision.Allowed {
		return &result.Result{
			Condition: v1alpha1.ConditionJoined, Reason: v1alpha1.ReasonCertificateRequestRefused,
			Outcome: result.ChangeFailed, Message: decision.Message,
			Next: "No certificate was issued. The operator's agent does not send such a request: check who has access to the host.",
		}
	}
	return nil
}

// signerOf is who signs for an identity: for kubelets the cluster has a signer of its own.
func signerOf(identity nodespec.Identity) string {
	if identity.Name == "" {
		return certificatesv1.KubeAPIServerClientKubeletSignerName
	}
	return certificatesv1.KubeAPIServerClientSignerName
}

// sign has the cluster's signer sign the request. Its name follows from the request, so a second attempt finds the
// first one's answer.
func (c Signer) sign(ctx context.Context, instance, node string, request []byte, identity nodespec.Identity) ([]byte, error) {
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
	err = c.await(ctx, signPoll, signLimit, func(ctx context.Context) (bool, error) {
		present, err := made, error(nil)
		if !justMade {
			present, err = requests.Get(ctx, name, metav1.GetOptions{})
		}
		justMade = false
		if err != nil {
			return false, fmt.Errorf("read CertificateSigningRequest %s: %w", name, err)
		}
		// It may be an earlier attempt's, or that of somebody who has foreseen its name.
		if isNew := !existed && made.UID == present.UID; !ours(present, csr) || !isNew && !c.madeByOperator(present) {
			return false, fmt.Errorf("CertificateSigningRequest %s is there already and is not the operator's (made by %s): delete it", name, present.Spec.Username)
		}
		if refused := closedWithout(present); refused != "" {
			return false, fmt.Errorf("CertificateSigningRequest %s was %s", name, refused)
		}
		if !approved(present) {
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

// await asks at once and after each interval of the operator's clock, until the answer is yes or there is none. The
// limit is for the API server, whose time is the real one.
func (c Signer) await(ctx context.Context, interval, limit time.Duration,
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

// labelOf returns the name of an instance as the value of a label, which is shorter than the name of a Machine may be.
func labelOf(instance string) string {
	if len(instance) <= validation.LabelValueMaxLength {
		return instance
	}
	sum := sha256.Sum256([]byte(instance))
	return instance[:40] + "-" + hex.EncodeToString(sum[:8])
}

// madeByOperator reports whether a request was made by a ServiceAccount of the operator's namespace, which is this
// operator or the one before it. A host knows the request too, and with it the name; it would be approved for as long
// as the host wants, or whoever the host is.
func (c Signer) madeByOperator(request *certificatesv1.CertificateSigningRequest) bool {
	return strings.HasPrefix(request.Spec.Username, "system:serviceaccount:"+c.Namespace+":")
}

// ours reports whether a request is the one that the operator made: its name can be foreseen, and nothing that another
// made is approved under it.
func ours(present, made *certificatesv1.CertificateSigningRequest) bool {
	return bytes.Equal(present.Spec.Request, made.Spec.Request) && present.Spec.SignerName == made.Spec.SignerName &&
		slices.Equal(present.Spec.Usages, made.Spec.Usages) && present.Spec.ExpirationSeconds == nil &&
		present.Labels[labelInstance] == made.Labels[labelInstance]
}

func approved(csr *certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(csr.Status.Conditions,
		func(condition certificatesv1.CertificateSigningRequestCondition) bool {
			return condition.Type == certificatesv1.CertificateApproved
		})
}

func closedWithout(csr *certificatesv1.CertificateSigningRequest) string {
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
