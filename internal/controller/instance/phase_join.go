package instance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy"
)

const (
	// labelInstance on a CertificateSigningRequest names the WindowsInstance that it was made for, as labelOf writes it.
	labelInstance = "windowsmachineconfig.openshift.io/instance"
	// signLimit is how long the cluster's signer may take before the operator looks again later.
	signLimit = 10 * time.Second
	// registerLimit is how long a started kubelet may take to register its node before it counts as a failure.
	registerLimit = 5 * time.Minute
)

// join gets the node's services their certificates and binds the Node that the kubelet registers.
func (r *Reconciler) join(ctx context.Context, s *scope) *obstacle {
	if slices.Contains(s.session.left.Needs, nodespec.NeedCertificate) {
		if o := s.tellLostCertificate(ctx); o != nil {
			return o
		}
	}
	if len(neededCertificates(s.session.left)) > 0 {
		if o := s.issueCertificates(ctx); o != nil {
			return o
		}
	}
	node, err := s.node(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionJoined, "read the Node", err)
	}
	if node == nil && s.instance.Status.NodeRef.UID != "" {
		if o := s.registerAgain(ctx); o != nil {
			return o
		}
	}
	if node == nil {
		return s.awaited("the Node "+s.nodeName(), registerLimit, &obstacle{
			condition: v1alpha1.ConditionJoined, reason: v1alpha1.ReasonNodeNotRegistered,
			message: "The kubelet runs and has its certificate; Node " + s.nodeName() + " is not registered yet.",
			next:    `If this lasts, look at C:\var\log\kubelet on the host: can it reach ` + s.cluster.APIServerInternalURL + "?",
		})
	}
	if err := s.bindNode(ctx, node); err != nil {
		return apiObstacle(v1alpha1.ConditionJoined, "label the Node", err)
	}
	s.pass(v1alpha1.ConditionJoined, "The kubelet has its certificate and registered Node "+node.Name+".")
	return nil
}

// registerAgain has the kubelet register a Node that was there and was deleted: it does so only when it starts.
func (s *scope) registerAgain(ctx context.Context) *obstacle {
	ref := s.instance.Status.NodeRef
	s.emit(nodeLost(s.instance))
	s.instance.Status.Registration, ref.UID = ref.UID, ""
	if err := s.patchStatus(ctx); err != nil {
		return apiObstacle(v1alpha1.ConditionJoined, "note that the Node was deleted", err)
	}
	spec, o := s.spec(ctx)
	if o != nil {
		return o
	}
	return s.apply(ctx, spec)
}

// tellLostCertificate says that a node which had joined before needs another certificate: it was off for longer than the life of its
// own, or lost the file.
func (s *scope) tellLostCertificate(ctx context.Context) *obstacle {
	if s.instance.Status.NodeRef.UID == "" {
		return nil
	}
	lost := &obstacle{
		phase: "join", condition: v1alpha1.ConditionJoined, reason: v1alpha1.ReasonCertificateExpired, waiting: true,
		message: lostCertificate(s.session.facts.Identity.Current),
		next:    "The operator has a new certificate signed for the key that the host has made, and sends it over the pinned connection.",
	}
	s.emit(stopped(s.instance, lost))
	if err := s.show(ctx, lost); err != nil {
		return apiObstacle(v1alpha1.ConditionJoined, "say that the kubelet's certificate is lost", err)
	}
	return nil
}

func lostCertificate(current *plan.CertificateFacts) string {
	if current == nil {
		return "The kubelet's certificate is no longer on the host."
	}
	return "The kubelet's certificate for " + current.CommonName + " was valid until " + current.NotAfter.UTC().Format(time.RFC3339) + "."
}

// neededCertificates are the names of the identities whose certificates a plan needs; empty for the kubelet's.
func neededCertificates(p plan.Plan) []string {
	var names []string
	for _, need := range p.Needs {
		if name, ok := nodespec.CertificateOf(need); ok {
			names = append(names, name)
		}
	}
	return names
}

// issueCertificates signs the requests that came over the pinned connection, and sends all certificates back with the spec at once.
func (s *scope) issueCertificates(ctx context.Context) *obstacle {
	spec, o := s.spec(ctx)
	if o != nil {
		return o
	}
	answers := spec.Answers()
	for _, identity := range spec.AllIdentities() {
		if !slices.Contains(neededCertificates(s.session.left), identity.Name) {
			continue
		}
		certificate, o := s.issue(ctx, identity, s.session.facts)
		if o != nil {
			return o
		}
		answers.SetCertificate(identity.Name, string(certificate))
	}
	if o := s.apply(ctx, spec.With(answers)); o != nil {
		return o
	}
	if left := neededCertificates(s.session.left); len(left) > 0 {
		return s.certificateNotTaken(ctx, left[0])
	}
	return nil
}

// issue has a certificate signed for the request of an identity, if it asks for that identity and nothing else.
func (s *scope) issue(ctx context.Context, identity nodespec.Identity, facts *plan.Facts) ([]byte, *obstacle) {
	request := []byte(facts.IdentityOf(identity.Name).Request)
	decision := policy.ClientRequest(request, policy.ClientIdentity{CommonName: identity.CommonName, Organization: identity.Organization})
	if !decision.Allowed {
		return nil, &obstacle{
			condition: v1alpha1.ConditionJoined, reason: v1alpha1.ReasonCertificateRefused, message: decision.Message,
			next: "Nothing was signed. The host asked for an identity that is not its own: look at who controls it.",
		}
	}
	certificate, err := s.sign(ctx, request, signerOf(identity))
	if err != nil {
		return nil, apiObstacle(v1alpha1.ConditionJoined, "have the certificate of "+identity.CommonName+" signed", err)
	}
	s.emit(certificateIssued(s.instance, identity))
	return certificate, nil
}

// signerOf is who signs for an identity: for kubelets the cluster has a signer of its own.
func signerOf(identity nodespec.Identity) string {
	if identity.Name == "" {
		return certificatesv1.KubeAPIServerClientKubeletSignerName
	}
	return certificatesv1.KubeAPIServerClientSignerName
}

// certificateNotTaken is that the agent still needs a certificate which it was sent.
func (s *scope) certificateNotTaken(ctx context.Context, identity string) *obstacle {
	if err := s.deleteRequests(ctx, s); err != nil {
		return apiObstacle(v1alpha1.ConditionJoined, "delete the certificate request", err)
	}
	service := nodespec.Identity{Name: identity}.Service()
	return &obstacle{
		condition: v1alpha1.ConditionJoined, reason: v1alpha1.ReasonCertificateRefused,
		message: "The agent did not take the certificate that was signed for its request for " + service + ".",
		next:    "The operator has it signed anew at the next attempt. If this lasts, compare the host's clock with the cluster's.",
	}
}

// sign has the cluster's signer sign the request. Its name follows from the request, so a second attempt finds the first one's answer.
func (s *scope) sign(ctx context.Context, request []byte, signer string) ([]byte, error) {
	sum := sha256.Sum256(request)
	name := "wmco-" + s.nodeName() + "-" + hex.EncodeToString(sum[:6])
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{labelInstance: labelOf(s.instance.Name)}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: signer,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	requests := s.Clientset.CertificatesV1().CertificateSigningRequests()
	if _, err := requests.Create(ctx, csr, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create CertificateSigningRequest %s: %w", name, err)
	}
	var certificate []byte
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, signLimit, true, func(ctx context.Context) (bool, error) {
		present, err := requests.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, fmt.Errorf("read CertificateSigningRequest %s: %w", name, err)
		}
		if !ours(present, csr) {
			return false, fmt.Errorf("CertificateSigningRequest %s is there already and is not the operator's (made by %s): delete it", name, present.Spec.Username)
		}
		if refused := closedWithout(present); refused != "" {
			return false, fmt.Errorf("CertificateSigningRequest %s was %s", name, refused)
		}
		if !approved(present) {
			present.Status.Conditions = append(present.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
				Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "RequestedOverPinnedConnection",
				Message: "The request came over the pinned SSH connection of WindowsInstance " + s.instance.Name + ".",
			})
			_, err = requests.UpdateApproval(ctx, name, present, metav1.UpdateOptions{})
			if apierrors.IsConflict(err) {
				return false, nil
			}
			return false, err
		}
		certificate = present.Status.Certificate
		return len(certificate) > 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for the signed certificate: %w", err)
	}
	return certificate, nil
}

// labelOf is the name of an instance as the value of a label, which is shorter than the name of a Machine may be.
func labelOf(instance string) string {
	if len(instance) <= validation.LabelValueMaxLength {
		return instance
	}
	sum := sha256.Sum256([]byte(instance))
	return instance[:40] + "-" + hex.EncodeToString(sum[:8])
}

// ours tells whether a request is the one that the operator made: its name can be foreseen, and nothing that another made is approved
// under it.
func ours(present, made *certificatesv1.CertificateSigningRequest) bool {
	return bytes.Equal(present.Spec.Request, made.Spec.Request) && present.Spec.SignerName == made.Spec.SignerName &&
		slices.Equal(present.Spec.Usages, made.Spec.Usages) && present.Labels[labelInstance] == made.Labels[labelInstance]
}

func approved(csr *certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved
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
