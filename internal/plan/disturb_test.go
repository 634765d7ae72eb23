package plan_test

import (
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// clusterInputs returns the inputs of a node in a cluster with all settings.
func clusterInputs() nodespec.Inputs {
	in := nodespec.Inputs{Kubernetes: "1.36",
		Cluster: nodespec.Cluster{
			Platform: "AWS", Version: "5.0.1",
			APIServerInternalURL: "https://api-int.lab.example.com:6443",
			APIServerCA:          authorityPEM(), KubeletClientCA: authorityPEM(), ServiceCIDRs: []string{"172.30.0.0/16"},
			Kubelet: nodespec.WorkerKubelet{ClusterDNS: []string{"172.30.0.10"}, ClusterDomain: "cluster.local",
				CloudProvider: "external"},
			Network: nodespec.ClusterNetwork{Type: "OVNKubernetes", HybridOverlay: true,
				HybridClusterNetworks: []string{"10.132.0.0/14"}},
			Proxy: nodespec.Proxy{HTTPS: "http://proxy.example.com:3128", NoProxy: ".example.com"},
			Registries: nodespec.Registries{
				Hosts:       []nodespec.Registry{{Host: "quay.io", Mirrors: []nodespec.Mirror{{Host: "mirror.example.com:5000"}}}},
				Credentials: []nodespec.Credential{{Registry: "private.example.com", Auth: "dXNlcjpwYXNzd29yZA=="}},
			},
			MetricsServing: nodespec.ServingCertificate{Certificate: authorityPEM(), Key: "key", ClientCA: authorityPEM()},
		},
		Instance: nodespec.Instance{Name: "a", NodeName: "a", NodeIP: "10.0.0.4"}, OperatorVersion: "12.0.0",
		Agent: nodespec.PayloadFile{Name: "wicd.exe", SHA256: strings.Repeat("0", 64)}, PodSubnet: "10.132.1.0/24",
	}
	for _, names := range [][]string{
		{"containerd", "containerd.exe", "containerd-shim-runhcs-v1.exe"}, {"kubelet", "kubelet.exe"},
		{"kube-proxy", "kube-proxy.exe"},
		{"kube-log-runner", "kube-log-runner.exe"}, {"cni", "win-overlay.exe", "host-local.exe"},
		{"hybrid-overlay-node", "hybrid-overlay-node.exe"},
		{"windows_exporter", "windows_exporter.exe"}, {"csi-proxy", "csi-proxy.exe"},
		{"ecr-credential-provider", "ecr-credential-provider.exe"},
	} {
		component := nodespec.Component{Name: names[0], Version: "v1"}
		for _, name := range names[1:] {
			component.Files = append(component.Files, nodespec.PayloadFile{Name: name,
				SHA256: plan.Digest([]byte(name)), Size: 1})
		}
		in.Payload = append(in.Payload, component)
	}
	return in
}

func authorityPEM() string {
	block, _ := pem.Decode([]byte(nodeCertificate()))
	return string(pem.EncodeToMemory(block))
}

func makeSpec(t *testing.T, in nodespec.Inputs) nodespec.NodeSpec {
	t.Helper()
	spec, err := nodespec.Make(in)
	if err != nil {
		t.Fatal(err)
	}
	spec.Identity.Certificate = nodeCertificate()
	for i, identity := range spec.Identities {
		spec.Identities[i].Certificate = newCertificatePEM(identity.CommonName, key(), now.Add(time.Hour))
	}
	return spec
}

// newAppliedModel returns a host with an applied spec of package nodespec.
func newAppliedModel(t *testing.T, spec nodespec.NodeSpec) *model {
	t.Helper()
	m := newModel()
	m.overlay, m.network, m.subnet = nodespec.ServiceHybridOverlay, spec.Network.HNSNetwork, spec.Network.PodSubnet
	convergeModel(t, m, spec, -1)
	if p := plan.Make(m.Facts, spec); len(p.Steps)+len(p.Needs) != 0 {
		t.Fatalf("left to do: %s", formatPlan(p))
	}
	return m
}

// The cases list the effects of changed cluster settings on a node in service: restarted services, and disrupted
// pods, for which the disruption policy applies. All other changes are applied immediately. Reverting a change has
// the same effects.
func TestMake_DisruptionBySettingsChange(t *testing.T) {
	everything := []string{"containerd", nodespec.ServiceKubelet, nodespec.ServiceHybridOverlay, nodespec.ServiceKubeProxy}
	for what, test := range map[string]struct {
		change   func(*nodespec.Inputs)
		steps    []string // without starts and stops; a trailing star matches any suffix
		restarts []string
		disturbs bool
	}{
		"nothing": {change: func(*nodespec.Inputs) {}},
		"the proxy": {
			change: func(in *nodespec.Inputs) { in.Cluster.Proxy.HTTPS = "http://other.example.com:3128" },
			steps:  []string{"ConfigureService containerd", "ConfigureService kubelet"}, restarts: everything, disturbs: true,
		},
		"an authority": {
			change: func(in *nodespec.Inputs) { in.Cluster.TrustedCAs = []string{authorityPEM()} },
			steps:  []string{"TrustCertificate CN=system:node:a*"},
		},
		"a mirror more": {
			change: func(in *nodespec.Inputs) {
				in.Cluster.Registries.Hosts = append(slices.Clone(in.Cluster.Registries.Hosts),
					nodespec.Registry{Host: "registry.example.com:5000", Mirrors: []nodespec.Mirror{{Host: "mirror.example.com"}}})
			},
			steps: []string{`MakeDirectory C:\k\containerd\registries\registry.example.com*`, `WriteFile C:\k\containerd\registries\registry.example.com*`},
		},
		"another mirror": {
			change: func(in *nodespec.Inputs) {
				in.Cluster.Registries.Hosts = []nodespec.Registry{{Host: "quay.io", Mirrors: []nodespec.Mirror{{Host: "other.example.com"}}}}
			},
			steps: []string{`WriteFile C:\k\containerd\registries\quay.io\hosts.toml`},
		},
		"no mirrors": {
			change: func(in *nodespec.Inputs) { in.Cluster.Registries.Hosts = nil },
			steps:  []string{`RemovePath C:\k\containerd\registries\quay.io`},
		},
		"the pull secret": {
			change: func(in *nodespec.Inputs) {
				in.Cluster.Registries.Credentials = []nodespec.Credential{{Registry: "private.example.com", Auth: "b3RoZXI6cGFzc3dvcmQ="}}
			},
			steps: []string{`WriteFile C:\var\lib\kubelet\config.json`},
		},
		"the exporter's certificate": {
			change: func(in *nodespec.Inputs) {
				in.Cluster.MetricsServing.Certificate, in.Cluster.MetricsServing.Key = authorityPEM()+authorityPEM(), "other"
			},
			steps: []string{`WriteFile C:\k\tls\certs\tls*`},
		},
		"the authorities of the exporter's clients": {
			change: func(in *nodespec.Inputs) { in.Cluster.MetricsServing.ClientCA += authorityPEM() },
			steps:  []string{`WriteFile C:\k\tls\certs\client-ca.crt`},
		},
		"no authorities of the exporter's clients": {
			change: func(in *nodespec.Inputs) { in.Cluster.MetricsServing.ClientCA = "" },
			steps:  []string{`WriteFile C:\k\tls\windows-exporter-webconfig.yaml`, `RemovePath C:\k\tls\certs\client-ca.crt`},
		},
		"the kubelet's configuration": {
			change: func(in *nodespec.Inputs) { in.Cluster.Kubelet.Settings = `{"maxPods":120}` },
			steps:  []string{`WriteFile C:\k\kubelet.conf`}, restarts: everything[1:], disturbs: true,
		},
		"the cluster's DNS": {
			change: func(in *nodespec.Inputs) { in.Cluster.Kubelet.ClusterDNS = []string{"172.30.0.11"} },
			steps:  []string{`WriteFile C:\k\kubelet.conf`}, restarts: everything[1:], disturbs: true,
		},
		"the VXLAN port": {
			change: func(in *nodespec.Inputs) { port := int32(9898); in.Cluster.Network.VXLANPort = &port },
			steps:  []string{"ConfigureService hybrid-overlay-node"}, restarts: everything[2:], disturbs: true,
		},
		"the authority of the kubelet's clients": {
			change: func(in *nodespec.Inputs) { in.Cluster.KubeletClientCA += authorityPEM() },
			steps:  []string{`WriteFile C:\k\kubelet-ca.crt`},
		},
		"the API server's authority": {
			change: func(in *nodespec.Inputs) { in.Cluster.APIServerCA += authorityPEM() },
			steps:  []string{`WriteFile C:\k\bootstrap-ca.crt`}, restarts: everything[1:], disturbs: true,
		},
		"the operator alone": {change: func(in *nodespec.Inputs) { in.OperatorVersion = "12.0.1" }},
	} {
		t.Run(what, func(t *testing.T) {
			before := clusterInputs()
			after := clusterInputs()
			test.change(&after)
			m := newAppliedModel(t, makeSpec(t, before))
			m.Ledger = plan.Record(m.Facts, makeSpec(t, after))
			p := plan.Make(m.Facts, makeSpec(t, after))
			checkDisruption(t, p, test.steps, test.restarts, test.disturbs)
			// Objects are removed last, after their replacements exist.
			if i := slices.IndexFunc(p.Steps, isRemoval); i >= 0 && slices.ContainsFunc(p.Steps[i:], func(step plan.Step) bool { return !isRemoval(step) }) {
				t.Errorf("something is taken away before the end:\n%s", formatPlan(p))
			}
			convergeModel(t, m, makeSpec(t, after), -1)
			back := convergeModel(t, m, makeSpec(t, before), -1)
			if disturbs := slices.ContainsFunc(back, func(step plan.Step) bool { return step.DisruptsPods }); disturbs != test.disturbs {
				t.Errorf("back again disturbs pods: %t", disturbs)
			}
			if p := plan.Make(m.Facts, makeSpec(t, before)); len(p.Steps) != 0 {
				t.Errorf("left to do: %s", formatPlan(p))
			}
		})
	}
}

func isRemoval(step plan.Step) bool { _, is := step.Operation.(plan.RemovePath); return is }

func checkDisruption(t *testing.T, p plan.Plan, want, restarts []string, disturbs bool) {
	t.Helper()
	var stopped, started, otherSteps []string
	disruptive := false
	for _, step := range p.Steps {
		disruptive = disruptive || step.DisruptsPods
		switch o := step.Operation.(type) {
		case plan.StopService:
			stopped = append(stopped, o.Service)
		case plan.StartService:
			started = append(started, o.Service)
		default:
			otherSteps = append(otherSteps, step.Name)
		}
	}
	slices.Reverse(stopped)
	if !slices.Equal(stopped, restarts) || !slices.Equal(started, restarts) {
		t.Errorf("stopped %v, started %v, want %v", stopped, started, restarts)
	}
	if disruptive != disturbs {
		t.Errorf("disturbs pods: %t:\n%s", disruptive, formatPlan(p))
	}
	is := func(name, pattern string) bool {
		start, open := strings.CutSuffix(pattern, "*")
		return name == pattern || open && strings.HasPrefix(name, start)
	}
	for _, name := range otherSteps {
		if !slices.ContainsFunc(want, func(w string) bool { return is(name, w) }) {
			t.Errorf("%s is not expected", name)
		}
	}
	for _, w := range want {
		if !slices.ContainsFunc(otherSteps, func(name string) bool { return is(name, w) }) {
			t.Errorf("%s is missing in %q", w, otherSteps)
		}
	}
}
