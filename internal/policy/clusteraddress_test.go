package policy

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

var aCluster = nodespec.Cluster{
	APIServerInternalURL: "https://api-int.lab.example.com:6443", APIServerURL: "https://203.0.113.7:6443",
	ServiceCIDRs: []string{"172.30.0.0/16", "fd02::/112", "no network"}, VirtualIPs: []string{"192.168.7.2", "no address"},
	Kubelet: nodespec.WorkerKubelet{ClusterDomain: "Corp.Internal"},
	Network: nodespec.ClusterNetwork{PodNetworks: []string{"10.128.0.0/14"}, HybridClusterNetworks: []string{"10.132.0.0/14"}},
}

//
func TestWhatTheClusterIsReachedByIsNoNodes(t *testing.T) {
	for address, says := range map[string]string{
		"10.9.0.1": "", "192.168.7.3": "", "203.0.113.8": "", "100.64.0.9": "", "fd01::9": "", "2001:db8::1": "",
		"172.30.0.1": "Services", "fd02::1": "Services", "10.128.0.1": "pods", "10.131.255.255": "pods", "10.132.7.1": "Windows pods",
		"192.168.7.2": "virtual", "203.0.113.7": "API server", "::ffff:203.0.113.7": "API server", "::ffff:172.30.0.1": "Services",
		"127.0.0.1": "one host", "::1": "one host", "169.254.169.254": "one host", "fe80::1": "one host", "224.0.0.1": "one host", "ff02::1": "one host",
		"0.0.0.0": "one host", "0.1.2.3": "one host", "::": "one host", "255.255.255.255": "one host", "240.0.0.1": "one host",
	} {
		if got := clusterAddress(netip.MustParseAddr(address), &aCluster); (got == "") != (says == "") || !strings.Contains(got, says) {
			t.Errorf("%s is %q, want %q", address, got, says)
		}
	}
	for name, says := range map[string]string{
		"win-a": "", "win-a.lab.example.com": "", "apis": "", "my-api": "", "localhosts": "", "kubernetes-1": "", "svc": "Service", "lab.example.com": "",
		"localhost": "every host", "LOCALHOST.": "every host", "localhost.localdomain": "every host", "a.localhost": "every host",
		"kubernetes": "Service", "Kubernetes.Default": "Service", "kubernetes.default.svc": "Service", "a.b.svc.corp.internal": "Service", "corp.internal": "Service",
		"api-int.lab.example.com": "API server", "API-INT.lab.example.com.": "API server", "api.lab.example.com": "API server", "api-int": "API server", "api": "API server",
		"console.apps.lab.example.com": "Route", "apps.lab.example.com": "Route",
	} {
		if got := clusterName(name, &aCluster); (got == "") != (says == "") || !strings.Contains(got, says) {
			t.Errorf("%s is %q, want %q", name, got, says)
		}
	}
	t.Run("and no host becomes a node of such a name", func(t *testing.T) {
		for name, allowed := range map[string]bool{"win-a": true, "kubernetes": false, "localhost": false, "api-int": false, "api-int.lab.example.com": false, "oauth-openshift.apps.lab.example.com": false} {
			decision := NameClaim(Claim{Instance: bound(nil), NodeName: name, Cluster: aCluster})
			if decision.Allowed != allowed || !allowed && (decision.Check != "ClusterName" || decision.Reason != v1alpha1.ReasonNameConflict) {
				t.Errorf("%s: %+v", name, decision)
			}
		}
	})
	t.Run("some of it in any cluster, also one that cannot be read", func(t *testing.T) {
		for _, name := range []string{"localhost", "kubernetes", "kubernetes.default.svc.cluster.local"} {
			if clusterName(name, nil) == "" {
				t.Errorf("%s may be a node's", name)
			}
		}
		if clusterAddress(netip.MustParseAddr("127.0.0.1"), nil) == "" || clusterAddress(netip.MustParseAddr("172.30.0.1"), nil) != "" {
			t.Error("without the cluster, loopback may be a node's, or the network of Services is known")
		}
	})
	t.Run("an API server that the installer has not named has no other names", func(t *testing.T) {
		own := nodespec.Cluster{APIServerInternalURL: "https://control.example.com:6443"}
		for name, taken := range map[string]bool{"control.example.com": true, "control": false, "api.example.com": false, "apps.example.com": false} {
			if got := clusterName(name, &own); (got != "") != taken {
				t.Errorf("%s is %q", name, got)
			}
		}
	})
}
