package plan_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// cloud is the identity of a service other than the kubelet.
var cloud = nodespec.Identity{
	Name: "cloud-node-manager", Directory: `C:\k\cloud-node-manager\pki`,
	CommonName: "system:cloud-node-manager:node-a", Organization: "system:cloud-node-managers",
}

// signIdentity returns a request for an identity, and a certificate for its key.
func signIdentity(t *testing.T, identity nodespec.Identity) (request, certificate string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	subject := pkix.Name{CommonName: identity.CommonName, Organization: []string{identity.Organization}}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: subject, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(24 * time.Hour)}
	issued, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, data []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	}
	return encode("CERTIFICATE REQUEST", der), encode("CERTIFICATE", issued)
}

func newCertificateFacts(identity nodespec.Identity, notAfter time.Time) *plan.CertificateFacts {
	return &plan.CertificateFacts{
		CommonName: identity.CommonName, Organization: []string{identity.Organization},
		NotBefore: notAfter.Add(-24 * time.Hour), NotAfter: notAfter,
	}
}

// withCloud returns a spec with a service that needs its own certificate, and facts of an otherwise up-to-date
// host.
func withCloud() (nodespec.NodeSpec, plan.Facts) {
	service := host.ServiceConfig{Name: "cloud-node-manager", CommandLine: `C:\k\cloud-node-manager.exe`,
		StartType: host.StartManual}
	spec := nodespec.NodeSpec{
		Schema: nodespec.SchemaVersion, NodeName: "node-a", Identities: []nodespec.Identity{cloud},
		Services: []nodespec.Service{{ServiceConfig: service,
			Needs: []nodespec.Need{nodespec.NeedCertificateOf(cloud.Name)}}},
	}
	facts := plan.Facts{
		Time: now, EventSource: true,
		Services: map[string]host.Service{"cloud-node-manager": {ServiceConfig: service, State: host.ServiceRunning,
			RunningCommandLine: service.CommandLine}},
	}
	return spec, facts
}

func stepsOf(p plan.Plan) string {
	var names []string
	for _, step := range p.Steps {
		names = append(names, step.Name)
	}
	return strings.Join(names, ", ")
}

//
func TestIdentity_CertificateRequestedAndInstalled(t *testing.T) {
	request, certificate := signIdentity(t, cloud)
	otherRequest, _ := signIdentity(t, cloud)
	need := nodespec.NeedCertificateOf(cloud.Name)
	for name, c := range map[string]struct {
		facts       plan.IdentityFacts
		certificate string
		stopped     bool
		want        string
		needs       bool
	}{
		"asks for its certificate when it has none": {want: "RequestCertificate " + cloud.CommonName,
			needs: true},
		"waits while its key waits, and does not start": {facts: plan.IdentityFacts{Request: request},
			stopped: true, needs: true},
		"gets what was signed for its key, and starts": {facts: plan.IdentityFacts{Request: request},
			certificate: certificate, stopped: true, want: "InstallCertificate " + cloud.CommonName +
				", StartService cloud-node-manager"},
		"does not get what was signed for another key": {facts: plan.IdentityFacts{Request: otherRequest},
			certificate: certificate, needs: true},
		"asks again when its certificate has expired": {facts: plan.IdentityFacts{Current: newCertificateFacts(cloud,
			now)}, want: "RequestCertificate " + cloud.CommonName, needs: true},
		"gets another for one that has expired, and is not restarted": {facts: plan.IdentityFacts{Current: newCertificateFacts(cloud,
			now), Request: request}, certificate: certificate, want: "InstallCertificate " + cloud.CommonName},
		"keeps a certificate that is good, however soon it expires": {facts: plan.IdentityFacts{Current: newCertificateFacts(cloud,
			now.Add(time.Minute))}, certificate: certificate},
		"asks anew when its certificate is for another node": {facts: plan.IdentityFacts{Current: &plan.CertificateFacts{CommonName: "system:cloud-node-manager:b", NotAfter: now.Add(time.Hour)}}, want: "RequestCertificate " + cloud.CommonName, needs: true},
		"asks anew when the request that waits is for another identity": {facts: plan.IdentityFacts{Request: requestOf(t,
			"system:cloud-node-manager:b")}, want: "RequestCertificate " + cloud.CommonName, needs: true},
	} {
		t.Run(name, func(t *testing.T) {
			spec, facts := withCloud()
			facts.Identities = map[string]plan.IdentityFacts{cloud.Name: c.facts}
			spec.Identities = []nodespec.Identity{cloud}
			spec.Identities[0].Certificate = c.certificate
			if c.stopped {
				service := facts.Services["cloud-node-manager"]
				service.State, service.RunningCommandLine = host.ServiceStopped, ""
				facts.Services["cloud-node-manager"] = service
			}
			p := plan.Make(facts, spec)
			if got := stepsOf(p); got != c.want {
				t.Errorf("steps %q, want %q", got, c.want)
			}
			if slices.Contains(p.Needs, need) != c.needs {
				t.Errorf("needs %q", p.Needs)
			}
		})
	}
}

// Drift of cloud-node-manager, which has its own certificate, is repaired like drift of any other service.
//
func TestIdentity_CloudNodeManagerDriftRepaired(t *testing.T) {
	const name = "cloud-node-manager"
	for drift, c := range map[string]struct {
		alter func(map[string]host.Service)
		want  string
	}{
		"unchanged": {func(map[string]host.Service) {}, ""},
		"stopped": {func(services map[string]host.Service) {
			service := services[name]
			service.State, service.RunningCommandLine = host.ServiceStopped, ""
			services[name] = service
		}, "StartService " + name},
		"deleted": {func(services map[string]host.Service) { delete(services, name) },
			"ConfigureService " + name + ", StartService " + name},
		"altered": {func(services map[string]host.Service) {
			service := services[name]
			service.CommandLine += " --other"
			services[name] = service
		}, "StopService " + name + ", ConfigureService " + name + ", StartService " + name},
	} {
		t.Run(drift, func(t *testing.T) {
			spec, facts := withCloud()
			facts.Identities = map[string]plan.IdentityFacts{cloud.Name: {Current: newCertificateFacts(cloud, now.Add(time.Hour))}}
			c.alter(facts.Services)
			p, left := plan.Repair(facts, spec)
			if got := stepsOf(p); got != c.want || left != "" {
				t.Errorf("steps %q, left %q; want %q", got, left, c.want)
			}
		})
	}
}

func requestOf(t *testing.T, commonName string) string {
	t.Helper()
	identity := cloud
	identity.CommonName = commonName
	request, _ := signIdentity(t, identity)
	return request
}

func TestRenewal(t *testing.T) {
	request, certificate := signIdentity(t, cloud)
	good := newCertificateFacts(cloud, now.Add(time.Hour))
	need := nodespec.NeedCertificateOf(cloud.Name)
	for name, c := range map[string]struct {
		facts       plan.IdentityFacts
		certificate string
		requested   []string
		want        string
		needs       []nodespec.Need
	}{
		"makes a key while the present certificate is good": {facts: plan.IdentityFacts{Current: good},
			requested: []string{cloud.Name}, want: "RequestCertificate " + cloud.CommonName, needs: []nodespec.Need{need}},
		"keeps a key that waits": {facts: plan.IdentityFacts{Current: good,
			Request: request}, requested: []string{cloud.Name}, needs: []nodespec.Need{need}},
		"puts the new certificate in place": {facts: plan.IdentityFacts{Current: good,
			Request: request}, certificate: certificate, requested: []string{cloud.Name},
			want: "InstallCertificate " + cloud.CommonName},
		"does not take a certificate for a key that is gone": {facts: plan.IdentityFacts{Current: good},
			certificate: certificate, requested: []string{cloud.Name}, want: "RequestCertificate " + cloud.CommonName,
			needs: []nodespec.Need{need}},
		"does nothing for an identity that was not named": {facts: plan.IdentityFacts{Current: good},
			requested: []string{"another"}},
		"and nothing else that the host lacks, nor for the kubelet": {facts: plan.IdentityFacts{Current: good},
			requested: []string{"kubelet", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			spec, facts := withCloud()
			spec.Identity = nodespec.Identity{CommonName: "system:node:node-a", Directory: `C:\pki`}
			spec.Environment = map[string]string{"MISSING": "1"}
			spec.Identities = []nodespec.Identity{cloud}
			spec.Identities[0].Certificate = c.certificate
			facts.Identities = map[string]plan.IdentityFacts{cloud.Name: c.facts}
			p := plan.Renew(facts, spec, c.requested)
			if got := stepsOf(p); got != c.want {
				t.Errorf("steps %q, want %q", got, c.want)
			}
			if !slices.Equal(p.Needs, c.needs) {
				t.Errorf("needs %q", p.Needs)
			}
			for _, step := range p.Steps {
				if step.DisruptsPods || step.Reboots {
					t.Errorf("%s disturbs pods", step.Name)
				}
			}
		})
	}
}

func TestRemove_DeletesIdentityDirectory(t *testing.T) {
	spec, facts := withCloud()
	outside := `C:\service-pki` // a directory below C:\k would be removed with C:\k
	spec.Identities[0].Directory = outside
	facts.Ledger = plan.Record(facts, spec)
	if _, recorded := facts.Ledger.Paths[outside]; !recorded {
		t.Fatalf("the ledger has %v", facts.Ledger.Paths)
	}
	facts.Services = nil // stopped and deleted
	facts.Files = map[string]plan.FileFact{outside: {Directory: true, Access: host.AccessAdministrators}}
	if !strings.Contains(stepsOf(plan.Remove(facts)), "RemovePath "+outside) {
		t.Errorf("a removal leaves it: %s", stepsOf(plan.Remove(facts)))
	}
}
