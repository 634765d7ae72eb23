package certrequest

import (
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

//
func TestJudgeClient_OnlyAssignedIdentityAllowed(t *testing.T) {
	cloud := Identity{CommonName: "system:cloud-node-manager:win-a", Organization: "system:cloud-node-managers"}
	as := func(user, group string) func(*x509.CertificateRequest) {
		return func(r *x509.CertificateRequest) {
			r.Subject = pkix.Name{CommonName: user, Organization: []string{group}}
		}
	}
	right := as(cloud.CommonName, cloud.Organization)
	if decision := JudgeClient(newRequest(t, nil, right), cloud); !decision.Allowed {
		t.Fatalf("the right request is refused: %+v", decision)
	}
	for name, c := range map[string]struct {
		change func(*x509.CertificateRequest)
		check  string
	}{
		"that of another node":                    {as("system:cloud-node-manager:win-b", cloud.Organization), "CommonNameMismatch"},
		"that of all nodes":                       {as("system:cloud-node-manager:", cloud.Organization), "CommonNameMismatch"},
		"the kubelet of the same node":            {as("system:node:win-a", "system:nodes"), "CommonNameMismatch"},
		"the right name in the group of nodes":    {as(cloud.CommonName, "system:nodes"), "OrganizationMismatch"},
		"the right name among the administrators": {as(cloud.CommonName, "system:masters"), "OrganizationMismatch"},
		"the right name in two groups": {func(r *x509.CertificateRequest) {
			right(r)
			r.Subject.Organization = append(r.Subject.Organization, "system:masters")
		}, "OrganizationMismatch"},
		"the right name in no group": {func(r *x509.CertificateRequest) {
			right(r)
			r.Subject.Organization = nil
		}, "OrganizationMismatch"},
		"the right name, with an alternative name": {func(r *x509.CertificateRequest) {
			right(r)
			r.DNSNames = []string{"api.example.com"}
		}, "NamesUnexpected"},
		"the right name, and an address": {func(r *x509.CertificateRequest) {
			right(r)
			r.EmailAddresses = []string{"a@example.com"}
		}, "NamesUnexpected"},
		"the right name, and a unit": {func(r *x509.CertificateRequest) {
			right(r)
			r.Subject.OrganizationalUnit = []string{"x"}
		}, "SubjectInvalid"},
	} {
		t.Run(name, func(t *testing.T) {
			decision := JudgeClient(newRequest(t, nil, c.change), cloud)
			if decision.Allowed || decision.Check != c.check || decision.Reason != v1alpha1.ReasonCertificateRequestRefused {
				t.Errorf("%+v", decision)
			}
		})
	}
	t.Run("a weak key", func(t *testing.T) {
		if decision := JudgeClient(newRequest(t, ecdsaKey(t, elliptic.P224()), right), cloud); decision.Allowed ||
			decision.Check != "KeyWeak" {
			t.Errorf("%+v", decision)
		}
	})
	t.Run("no request at all", func(t *testing.T) {
		if decision := JudgeClient(nil, cloud); decision.Allowed || decision.Check != "RequestMalformed" {
			t.Errorf("%+v", decision)
		}
	})
	t.Run("the identity of a kubelet is not that of a service", func(t *testing.T) {
		if decision := kubeletClientRequest(newRequest(t, nil, right), "win-a"); decision.Allowed ||
			!strings.Contains(decision.Message, "system:node:win-a") {
			t.Errorf("%+v", decision)
		}
	})
}
