package docs_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const podSubnet, sourceVIP = "10.132.1.0/24", "10.132.1.2"

// settingChanges contains the change of an administrator, or of the cluster, for each row of the guide's table.
var settingChanges = map[string]func(*testing.T, *nodespec.Cluster, *nodespec.Inputs){
	"proxy": func(_ *testing.T, c *nodespec.Cluster, _ *nodespec.Inputs) {
		c.Proxy = nodespec.Proxy{HTTPS: "http://proxy.example.com:3128"}
	},
	"certificate authorities that all nodes trust": func(t *testing.T, c *nodespec.Cluster, _ *nodespec.Inputs) {
		c.TrustedCAs = []string{newAuthorityPEM(t)}
	},
	"credentials for registries": func(_ *testing.T, c *nodespec.Cluster, _ *nodespec.Inputs) {
		c.Registries.Credentials = []nodespec.Credential{{Registry: "registry.example.com", Auth: "dXNlcjpwYXNzd29yZA=="}}
	},
	"mirrors": func(_ *testing.T, c *nodespec.Cluster, _ *nodespec.Inputs) {
		mirror := nodespec.Mirror{Host: "mirror.example.com:5000", Path: "copies", Tags: true,
			Authorization: "dXNlcjpwYXNzd29yZA=="}
		c.Registries.Hosts = []nodespec.Registry{{Host: "quay.io", Mirrors: []nodespec.Mirror{mirror}, NeverContact: true}}
	},
	"insecure, blocked, allowed registries": func(_ *testing.T, c *nodespec.Cluster, _ *nodespec.Inputs) {
		c.Registries.OnlyAllowed = true
		c.Registries.Hosts = []nodespec.Registry{
			{Host: "a.example.com:5000", Allowed: true, Endpoint: nodespec.Endpoint{Insecure: true}},
			{Host: "b.example.com", Blocked: true},
		}
	},
	"certificate authorities of registries": func(t *testing.T, c *nodespec.Cluster, _ *nodespec.Inputs) {
		c.Registries.Hosts = []nodespec.Registry{{Host: "quay.io", Endpoint: nodespec.Endpoint{CA: newAuthorityPEM(t)}}}
	},
	"kubelet": func(_ *testing.T, c *nodespec.Cluster, _ *nodespec.Inputs) { c.Kubelet.Settings = `{"maxPods":200}` },
	"certificate authority of the kubelets' clients": func(t *testing.T, c *nodespec.Cluster, _ *nodespec.Inputs) {
		c.KubeletClientCA = newAuthorityPEM(t)
	},
	"certificate authority of the API server": func(t *testing.T, c *nodespec.Cluster, _ *nodespec.Inputs) {
		c.APIServerCA = newAuthorityPEM(t)
	},
	"rotation of logs": func(_ *testing.T, _ *nodespec.Cluster, in *nodespec.Inputs) {
		in.LogSettings = nodespec.LogSettings{FileSize: "20Mi", FileAge: time.Hour}
	},
	"pause image": func(_ *testing.T, _ *nodespec.Cluster, in *nodespec.Inputs) {
		in.PauseImage = "registry.example.com/pause:3.10"
	},
	"network": func(_ *testing.T, c *nodespec.Cluster, _ *nodespec.Inputs) {
		port := int32(9898)
		c.Network.VXLANPort = &port
	},
	"certificate of the exporters": func(t *testing.T, c *nodespec.Cluster, _ *nodespec.Inputs) {
		c.MetricsServing = nodespec.ServingCertificate{Certificate: newAuthorityPEM(t), Key: "another key"}
	},
	"certificate authorities of the exporters' clients": func(t *testing.T, c *nodespec.Cluster, _ *nodespec.Inputs) {
		c.MetricsServing.ClientCA = newAuthorityPEM(t)
	},
}

func TestSettings_PodDisruptionDocumented(t *testing.T) {
	before, spec := matchingFacts(t, newInputs(t))
	if steps := plan.Make(before, spec).Steps; len(steps) > 0 {
		t.Fatalf("the host is not what it should be: %s, %s", steps[0].Name, steps[0].Reason)
	}
	documented := map[string]string{}
	link := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	for _, row := range tableRows(t, readText(t, "settings.md"), "| setting | where you set it | disrupts pods |") {
		documented[link.ReplaceAllString(row[0], "$1")] = row[2]
	}
	for setting, change := range settingChanges {
		t.Run(setting, func(t *testing.T) {
			in := newInputs(t)
			change(t, &in.Cluster, &in)
			p := plan.Make(before, newNodeSpec(t, in))
			disturbs := slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.DisruptsPods })
			if len(p.Steps) == 0 {
				t.Fatal("it changes nothing")
			}
			want := "no"
			if disturbs >= 0 {
				want = "yes: " + p.Steps[disturbs].Name
			}
			if got := documented[setting]; got != want[:min(len(want), len(got))] || got == "" {
				t.Errorf("docs/settings.md says whether it disturbs pods: %q, the plan: %s", got, want)
			}
		})
	}
	for setting := range documented {
		if settingChanges[setting] == nil {
			t.Errorf("nobody has compared with the code what docs/settings.md says of: %s", setting)
		}
	}
}

// kubernetes is the minor version of Kubernetes of the documented nodes.
const kubernetes = "1.36"

func newInputs(t *testing.T) nodespec.Inputs {
	t.Helper()
	logs, err := nodespec.ParseLogSettings("", "", "")
	if err != nil {
		t.Fatal(err)
	}
	var payload []nodespec.Component
	for component, files := range map[string][]string{
		"containerd": {"containerd.exe", "containerd-shim-runhcs-v1.exe"}, "kubelet": {"kubelet.exe"},
		"kube-proxy":      {"kube-proxy.exe"},
		"kube-log-runner": {"kube-log-runner.exe"}, "cni": {"win-overlay.exe", "host-local.exe", "win-bridge.exe"},
		"hybrid-overlay-node": {"hybrid-overlay-node.exe"}, "windows_exporter": {"windows_exporter.exe"},
		"csi-proxy":                {"csi-proxy.exe"},
		"azure-cloud-node-manager": {"azure-cloud-node-manager.exe"},
	} {
		c := nodespec.Component{Name: component, Version: "v1.0.0"}
		for _, file := range files {
			c.Files = append(c.Files, newPayloadFile(file))
		}
		payload = append(payload, c)
	}
	return nodespec.Inputs{
		Kubernetes: kubernetes,
		Cluster: nodespec.Cluster{
			Platform: "Azure", Version: "5.0.1", APIServerInternalURL: "https://api-int.lab.example.com:6443",
			APIServerCA: "API server", KubeletClientCA: "kubelet's clients", ServiceCIDRs: []string{"172.30.0.0/16"},
			Kubelet: nodespec.WorkerKubelet{ClusterDNS: []string{"172.30.0.10"}, ClusterDomain: "cluster.local",
				CloudProvider: "external"},
			Network: nodespec.ClusterNetwork{Type: "OVNKubernetes", HybridOverlay: true,
				HybridClusterNetworks: []string{"10.132.0.0/14"}},
			MetricsServing: nodespec.ServingCertificate{Certificate: "exporter", Key: "key"},
		},
		Instance: nodespec.Instance{Name: "win-a", NodeName: "win-a", HostName: "win-a", NodeIP: "10.1.42.1"},
		Payload:  payload, Agent: newPayloadFile("wicd.exe"), OperatorVersion: "12.0.0", PodSubnet: podSubnet, LogSettings: logs,
	}
}

func newPayloadFile(name string) nodespec.PayloadFile {
	sum := sha256.Sum256([]byte(name))
	return nodespec.PayloadFile{Name: name, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(name))}
}

func newNodeSpec(t *testing.T, in nodespec.Inputs) nodespec.NodeSpec {
	t.Helper()
	spec, err := nodespec.Make(in)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// matchingFacts returns the facts of a host that matches the spec.
func matchingFacts(t *testing.T, in nodespec.Inputs) (plan.Facts, nodespec.NodeSpec) {
	t.Helper()
	spec := newNodeSpec(t, in)
	facts := plan.Facts{
		Time: now, System: host.SystemInfo{HostName: spec.HostName}, Payload: map[string]string{},
		Features: map[string]host.FeatureState{},
		Files:    map[string]plan.FileFact{}, Firewall: map[string]host.FirewallRule{}, Services: map[string]host.Service{},
		Networks: []host.HNSNetwork{{Name: spec.Network.HNSNetwork, Type: "Overlay", Subnet: podSubnet}},
		Endpoints: []host.HNSEndpoint{{Name: spec.Network.SourceVIPEndpoint, Network: spec.Network.HNSNetwork,
			Address: sourceVIP, Attached: true}},
		Identity: newIdentityFacts(spec.Identity), Identities: map[string]plan.IdentityFacts{}, EventSource: true,
	}
	for _, identity := range spec.Identities {
		facts.Identities[identity.Name] = newIdentityFacts(identity)
	}
	for _, feature := range spec.Features {
		facts.Features[feature] = host.FeatureEnabled
	}
	facts.Ledger = plan.Record(facts, spec)
	for _, rule := range spec.Firewall {
		facts.Firewall[rule.Name] = rule
	}
	resolved := plan.Resolve(facts, spec)
	for _, service := range resolved.Services {
		facts.Services[service.Name] = host.Service{ServiceConfig: service.ServiceConfig, State: host.ServiceRunning,
			RunningCommandLine: service.CommandLine}
	}
	addFiles(facts, resolved)
	return facts, spec
}

func addFiles(facts plan.Facts, spec nodespec.NodeSpec) {
	for _, directory := range spec.Directories {
		facts.Files[directory.Path] = plan.FileFact{Directory: true, Access: directory.Access}
	}
	for _, file := range spec.Files {
		content := file.Bytes()
		facts.Files[file.Path] = plan.FileFact{SHA256: plan.Digest(content), Text: plan.TextDigest(content),
			Access: plan.FileAccess(file)}
	}
	for _, release := range spec.Releases {
		facts.Files[release.Directory] = plan.FileFact{Directory: true, Access: host.AccessInherited}
		facts.Files[release.Manifest()] = plan.FileFact{}
		for _, file := range release.Files {
			facts.Files[release.Path(file)] = plan.FileFact{SHA256: file.SHA256, Size: file.Size}
		}
	}
	for _, link := range spec.Links {
		facts.Files[link.Path] = plan.FileFact{LinkTarget: link.Target}
	}
}

func newIdentityFacts(identity nodespec.Identity) plan.IdentityFacts {
	return plan.IdentityFacts{Current: &plan.CertificateFacts{
		CommonName: identity.CommonName, Organization: []string{identity.Organization}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(time.Hour),
	}}
}

// newAuthorityPEM returns the PEM certificate of an authority.
func newAuthorityPEM(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: now,
		NotAfter: now.Add(time.Hour), IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
