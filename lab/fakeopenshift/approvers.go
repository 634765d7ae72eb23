package fakeopenshift

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// approveServing approves serving certificates of nodes with a Machine that has the requested addresses, as the
// cluster machine approver does. Nodes without a Machine, such as bring-your-own hosts, are ignored.
func (s *simulator) approveServing(ctx context.Context, name string) error {
	request, err := s.requests.Get(name)
	if err != nil || !isPending(request) || request.Spec.SignerName != certificatesv1.KubeletServingSignerName {
		return ignoreGone(err)
	}
	node, ok := strings.CutPrefix(request.Spec.Username, "system:node:")
	if !ok {
		return nil
	}
	machine, err := s.machineOf(ctx, node)
	if err != nil {
		return err
	}
	if machine == nil {
		_, err := s.nodes.Get(node) // A request may arrive before its node: the request is retried.
		return err
	}
	csr, err := parseRequest(request)
	if err != nil {
		return nil //nolint:nilerr // Nothing that the approver could do about it.
	}
	if csr.Subject.CommonName != request.Spec.Username || !slices.Equal(csr.Subject.Organization,
		[]string{"system:nodes"}) {
		return nil
	}
	known := machineAddresses(machine)
	for _, ip := range csr.IPAddresses {
		if !known[ip.String()] {
			return fmt.Errorf("machine %s has no address %s, which the certificate of node %s is to have",
				machine.GetName(), ip, node)
		}
	}
	for _, dns := range csr.DNSNames {
		if dns != node && !known[dns] {
			return fmt.Errorf("machine %s has no name %s, which the certificate of node %s is to have",
				machine.GetName(), dns, node)
		}
	}
	return s.approveRequest(ctx, request, "NodeCSRApprove",
		"This CSR was approved by the Node CSR Approver (cluster-machine-approver)")
}

// approveOVN approves the client certificates that OVN-Kubernetes uses on a node, as its identity approver
// does.
func (s *simulator) approveOVN(ctx context.Context, name string) error {
	request, err := s.requests.Get(name)
	if err != nil || !isPending(request) || request.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return ignoreGone(err)
	}
	csr, err := parseRequest(request)
	if err != nil {
		return nil //nolint:nilerr // Nothing that the approver could do about it.
	}
	node, ok := strings.CutPrefix(csr.Subject.CommonName, "system:ovn-node:")
	if !ok || !slices.Equal(csr.Subject.Organization, []string{"system:ovn-nodes"}) {
		return nil
	}
	if request.Spec.Username != "system:node:"+node && request.Spec.Username != csr.Subject.CommonName {
		return nil
	}
	return s.approveRequest(ctx, request, "AutoApproved", "Auto-approved CSR "+name)
}

func (s *simulator) approveRequest(ctx context.Context, request *certificatesv1.CertificateSigningRequest, reason,
	message string) error {
	request = request.DeepCopy()
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: reason, Message: message,
	})
	_, err := s.client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, request.Name, request,
		metav1.UpdateOptions{})
	if err == nil {
		s.log.Info("approved", "request", request.Name, "user", request.Spec.Username, "signer", request.Spec.SignerName)
	}
	return ignoreGone(err)
}

func parseRequest(request *certificatesv1.CertificateSigningRequest) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(request.Spec.Request)
	if block == nil {
		return nil, errors.New("the request is not PEM")
	}
	return x509.ParseCertificateRequest(block.Bytes)
}

// ignoreGone ignores the error for an object that no longer exists.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
