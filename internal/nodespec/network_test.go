package nodespec

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/internal/host"
)

func wordsOf(t testing.TB, spec NodeSpec, service string) []string {
	t.Helper()
	i := slices.IndexFunc(spec.Services, func(s Service) bool { return s.Name == service })
	if i < 0 {
		t.Fatalf("there is no service %s", service)
	}
	return host.SplitCommandLine(spec.Services[i].CommandLine)
}

//
func TestHybridOverlay(t *testing.T) {
	t.Run("bootstraps from the kubelet's kubeconfig and keeps its own certificate", func(t *testing.T) {
		words := wordsOf(t, mustMake(t, testInputs()), ServiceHybridOverlay)
		for _, want := range []string{
			`--bootstrap-kubeconfig=C:\k\kubeconfig`, `--cert-dir=C:\k\hybrid-overlay-node\pki`, "--cert-duration=24h",
			"--k8s-apiserver=https://api-int.lab.example.com:6443", `--k8s-cacert=C:\k\bootstrap-ca.crt`, "--windows-service",
		} {
			if !slices.Contains(words, want) {
				t.Errorf("%s is missing in %q", want, words)
			}
		}
	})
	for _, platform := range []string{"None", "BareMetal", "VSphere", "Nutanix", "AWS", "Azure", "GCP"} {
		t.Run("has the usual port on "+platform+" until the cluster has another", func(t *testing.T) {
			in := platformInputs(platform)
			isPort := func(word string) bool { return strings.HasPrefix(word, "--hybrid-overlay-vxlan-port") }
			if words := wordsOf(t, mustMake(t, in), ServiceHybridOverlay); slices.ContainsFunc(words, isPort) {
				t.Errorf("%q", words)
			}
			port := int32(9898)
			in.Cluster.Network.VXLANPort = &port
			if words := wordsOf(t, mustMake(t, in), ServiceHybridOverlay); !slices.Contains(words,
				"--hybrid-overlay-vxlan-port=9898") {
				t.Errorf("%q", words)
			}
		})
	}
	t.Run("it uses no proxy: it connects to the API server only", func(t *testing.T) {
		if environment := environmentOf(t, mustMake(t, azureInputs()), ServiceHybridOverlay); !slices.Equal(environment, []string{"NO_PROXY=*"}) {
			t.Errorf("it has %d variables", len(environment))
		}
	})
}

// `make payload` searches the payload's program for these flags.
func TestHybridOverlay_FlagsMatchPayloadTable(t *testing.T) {
	data, err := os.ReadFile("../../payload/components.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Components []struct {
			Name  string
			Flags []string
		}
	}
	if err := yaml.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, c := range table.Components {
		if c.Name == ServiceHybridOverlay {
			known = slices.Sorted(slices.Values(c.Flags))
		}
	}
	in := testInputs()
	port := int32(9898)
	in.Cluster.Network.VXLANPort, in.Debug = &port, true
	var names []string
	for _, word := range wordsOf(t, mustMake(t, in), ServiceHybridOverlay) {
		if flag, is := strings.CutPrefix(word, "--"); is {
			name, _, _ := strings.Cut(flag, "=")
			names = append(names, name)
		}
	}
	if slices.Sort(names); !slices.Equal(names, known) {
		t.Errorf("nodes give it %q, and the table has %q", names, known)
	}
}

// endpointPolicyOfHCN and the settings below correspond to hcnpolicy.go of github.com/Microsoft/hcsshim/hcn, which
// builds for Windows only.
type endpointPolicyOfHCN struct {
	Type     string
	Settings json.RawMessage
}

// policiesOf returns the endpoint policies of the CNI's configuration, by their type.
func policiesOf(t *testing.T, in Inputs) map[string][]json.RawMessage {
	t.Helper()
	var config struct {
		Policies []struct {
			Name  string
			Value endpointPolicyOfHCN
		}
	}
	if err := json.Unmarshal([]byte(fileAt(t, mustMake(t, in), cniConfigFile).Content), &config); err != nil {
		t.Fatal(err)
	}
	policies := map[string][]json.RawMessage{}
	for _, policy := range config.Policies {
		if policy.Name != "EndpointPolicy" {
			t.Errorf("a policy is named %s, which the plugin leaves out", policy.Name)
		}
		policies[policy.Value.Type] = append(policies[policy.Value.Type], policy.Value.Settings)
	}
	return policies
}

//
func TestCNIPolicies(t *testing.T) {
	in := testInputs()
	in.Cluster.ServiceCIDRs = []string{"172.30.0.0/16", "fd02::/112", "10.200.0.0/16"}
	policies := policiesOf(t, in)
	t.Run("packets to Services keep the pod's address and go into the overlay, for each IPv4 network", func(t *testing.T) {
		var nat struct{ Exceptions []string }
		if err := json.Unmarshal(policies["OutBoundNAT"][0], &nat); err != nil ||
			!slices.Equal(nat.Exceptions, []string{"172.30.0.0/16", "10.200.0.0/16"}) {
			t.Errorf("%+v, error %v", nat, err)
		}
		var prefixes []string
		for _, settings := range policies["SDNRoute"] {
			var route struct {
				DestinationPrefix string
				NeedEncap         bool
			}
			if err := json.Unmarshal(settings, &route); err != nil || !route.NeedEncap {
				t.Errorf("%+v, error %v", route, err)
			}
			prefixes = append(prefixes, route.DestinationPrefix)
		}
		if !slices.Equal(prefixes, nat.Exceptions) {
			t.Errorf("routes to %v", prefixes)
		}
	})
	t.Run("the node's address is the provider's", func(t *testing.T) {
		var provider struct{ ProviderAddress string }
		if err := json.Unmarshal(policies["ProviderAddress"][0], &provider); err != nil ||
			provider.ProviderAddress != "10.1.42.1" {
			t.Errorf("%+v, error %v", provider, err)
		}
	})
	t.Run("the plugin finds its policies by their exact letters", func(t *testing.T) {
		content := fileAt(t, mustMake(t, in), cniConfigFile).Content
		for _, letters := range []string{`"Type"`, `"Settings"`, `"Exceptions"`, `"ProviderAddress"`} {
			if !strings.Contains(content, letters) {
				t.Errorf("%s is missing in\n%s", letters, content)
			}
		}
	})
	for name, test := range map[string]struct {
		mtu  int32
		want uint16
	}{
		"not known":             {0, 0},
		"of Ethernet":           {1400, 0},
		"of Google Cloud":       {1360, 0},
		"of jumbo frames":       {8901, 0},
		"smaller than any need": {1200, 300},
	} {
		t.Run("a cluster MTU "+name+" takes off what Windows does not by itself", func(t *testing.T) {
			in := testInputs()
			in.Cluster.Network.MTU = test.mtu
			var overhead struct{ Overhead uint16 }
			for _, settings := range policiesOf(t, in)["EncapOverhead"] {
				if err := json.Unmarshal(settings, &overhead); err != nil {
					t.Fatal(err)
				}
			}
			if overhead.Overhead != test.want {
				t.Errorf("it takes off %d", overhead.Overhead)
			}
		})
	}
}

// The variants of the network change only the command line of hybrid-overlay-node and the CNI configuration.
func TestGoldenNetworks(t *testing.T) {
	port := int32(9898)
	for name, network := range map[string]struct {
		services []string
		network  ClusterNetwork
	}{
		"usual":       {[]string{"172.30.0.0/16"}, ClusterNetwork{MTU: 1400}},
		"custom-port": {[]string{"172.30.0.0/16"}, ClusterNetwork{MTU: 1400, VXLANPort: &port}},
		"dual-stack":  {[]string{"172.30.0.0/16", "fd02::/112"}, ClusterNetwork{MTU: 1400}},
		"small-mtu":   {[]string{"172.30.0.0/16"}, ClusterNetwork{MTU: 1200}},
	} {
		t.Run(name, func(t *testing.T) {
			usual, in := testInputs(), testInputs()
			in.Cluster.ServiceCIDRs, in.Cluster.Network = network.services, network.network
			in.Cluster.Network.HybridClusterNetworks = usual.Cluster.Network.HybridClusterNetworks
			spec := mustMake(t, in)
			command := strings.Join(wordsOf(t, spec, ServiceHybridOverlay), "\n")
			compareGolden(t, filepath.Join("testdata", "networks", name+".txt"), command+"\n\n"+fileAt(t, spec, cniConfigFile).Content)
		})
	}
}
