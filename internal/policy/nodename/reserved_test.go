package nodename_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

var aCluster = nodespec.Cluster{
	APIServerInternalURL: "https://api-int.lab.example.com:6443", APIServerURL: "https://203.0.113.7:6443",
	ServiceCIDRs: []string{"172.30.0.0/16", "fd02::/112", "no network"}, VirtualIPs: []string{"192.168.7.2", "no address"},
	Kubelet: nodespec.WorkerKubelet{ClusterDomain: "Corp.Internal"},
	Network: nodespec.ClusterNetwork{PodNetworks: []string{"10.128.0.0/14"},
		HybridClusterNetworks: []string{"10.132.0.0/14"}},
}

//
func TestReserved_ClusterAddressesAndNamesRejected(t *testing.T) {
	for address, message := range map[string]string{
		"10.9.0.1": "", "192.168.7.3": "", "203.0.113.8": "", "100.64.0.9": "", "fd01::9": "", "2001:db8::1": "",
		"172.30.0.1": "Services", "fd02::1": "Services", "10.128.0.1": "pods", "10.131.255.255": "pods",
		"10.132.7.1":  "Windows pods",
		"192.168.7.2": "virtual", "203.0.113.7": "API server", "::ffff:203.0.113.7": "API server",
		"::ffff:172.30.0.1": "Services",
		"127.0.0.1":         "single host", "::1": "single host", "169.254.169.254": "single host", "fe80::1": "single host",
		"224.0.0.1": "single host", "ff02::1": "single host",
		"0.0.0.0": "single host", "0.1.2.3": "single host", "::": "single host", "255.255.255.255": "single host",
		"240.0.0.1": "single host",
	} {
		if got := nodename.ReservedAddress(netip.MustParseAddr(address), &aCluster); (got == "") != (message == "") ||
			!strings.Contains(got, message) {
			t.Errorf("%s is %q, want %q", address, got, message)
		}
	}
	for name, message := range map[string]string{
		"win-a": "", "win-a.lab.example.com": "", "apis": "", "my-api": "", "localhosts": "", "kubernetes-1": "",
		"svc": "Service", "lab.example.com": "",
		"localhost": "every host", "LOCALHOST.": "every host", "localhost.localdomain": "every host",
		"a.localhost": "every host",
		"kubernetes":  "Service", "Kubernetes.Default": "Service", "kubernetes.default.svc": "Service",
		"a.b.svc.corp.internal": "Service", "corp.internal": "Service",
		"api-int.lab.example.com": "API server", "API-INT.lab.example.com.": "API server",
		"api.lab.example.com": "API server", "api-int": "API server", "api": "API server",
		"console.apps.lab.example.com": "Route", "apps.lab.example.com": "Route",
	} {
		if got := nodename.ReservedName(name, &aCluster); (got == "") != (message == "") || !strings.Contains(got, message) {
			t.Errorf("%s is %q, want %q", name, got, message)
		}
	}
	t.Run("and no host becomes a node of such a name", func(t *testing.T) {
		for name, allowed := range map[string]bool{"win-a": true, "kubernetes": false, "localhost": false, "api-int": false,
			"api-int.lab.example.com": false, "oauth-openshift.apps.lab.example.com": false} {
			decision := nodename.Grant(nodename.Claim{Instance: newBoundInstance(nil), NodeName: name, Cluster: aCluster})
			if decision.Allowed != allowed || !allowed && (decision.Check != "ReservedName" ||
				decision.Reason != v1alpha1.ReasonNameConflict) {
				t.Errorf("%s: %+v", name, decision)
			}
		}
	})
	t.Run("some of it in any cluster, also one that cannot be read", func(t *testing.T) {
		for _, name := range []string{"localhost", "kubernetes", "kubernetes.default.svc.cluster.local"} {
			if nodename.ReservedName(name, nil) == "" {
				t.Errorf("%s may be a node's", name)
			}
		}
		if nodename.ReservedAddress(netip.MustParseAddr("127.0.0.1"), nil) == "" ||
			nodename.ReservedAddress(netip.MustParseAddr("172.30.0.1"), nil) != "" {
			t.Error("without the cluster, loopback may be a node's, or the network of Services is known")
		}
	})
	t.Run("an API server that the installer has not named has no other names", func(t *testing.T) {
		own := nodespec.Cluster{APIServerInternalURL: "https://control.example.com:6443"}
		for name, reserved := range map[string]bool{"control.example.com": true, "control": false, "api.example.com": false,
			"apps.example.com": false} {
			if got := nodename.ReservedName(name, &own); (got != "") != reserved {
				t.Errorf("%s is %q", name, got)
			}
		}
	})
}

func TestNoHostAt_ReservedAddresses(t *testing.T) {
	cluster := nodespec.Cluster{ServiceCIDRs: []string{"172.30.0.0/16", "garbage"}}
	cluster.Network.HybridClusterNetworks = []string{"10.132.0.0/14"}
	for address, none := range map[string]bool{
		"10.1.42.1": false, "192.168.0.8": false, "172.31.0.1": false, "203.0.113.9": false, "fd00::8": false,
		"127.0.0.1": true, "127.255.0.9": true, "169.254.169.254": true, "0.0.0.0": true, "224.0.0.1": true,
		"255.255.255.255": true, "241.0.0.1": true,
		"::1": true, "::": true, "fe80::1": true, "ff02::1": true, "::ffff:127.0.0.1": true, "::ffff:169.254.169.254": true,
		"172.30.0.1": true, "::ffff:172.30.0.10": true, "10.132.5.6": true,
	} {
		if what := nodename.NoHostAt(netip.MustParseAddr(address), cluster); (what != "") != none {
			t.Errorf("of %s is said %q", address, what)
		}
	}
}

func TestIsAPIServerName(t *testing.T) {
	cluster := nodespec.Cluster{APIServerInternalURL: "https://api-int.lab.example.com:6443"}
	for name, is := range map[string]bool{
		"api-int.lab.example.com": true, "API-INT.lab.example.com": true, "api.lab.example.com": true,
		"win.lab.example.com": false, "api.example.com": false, "api": false, "api-int.lab.example.com.evil.org": false,
		"": false,
	} {
		if nodename.IsAPIServerName(name, cluster) != is {
			t.Errorf("%q: want %t", name, is)
		}
	}
	if nodename.IsAPIServerName("", nodespec.Cluster{}) || nodename.IsAPIServerName("api.", nodespec.Cluster{}) {
		t.Error("a cluster of which nothing is known names something")
	}
}

func TestIsAPIServerName_CustomName(t *testing.T) {
	cluster := nodespec.Cluster{APIServerInternalURL: "https://kube.example.com:6443"}
	if !nodename.IsAPIServerName("KUBE.example.com", cluster) || nodename.IsAPIServerName("api.example.com", cluster) {
		t.Error("it is taken for another")
	}
}

// newBoundInstance returns an instance bound to Node win-a.
func newBoundInstance(change func(*v1alpha1.WindowsInstance)) v1alpha1.WindowsInstance {
	instance := v1alpha1.WindowsInstance{
		ObjectMeta: metav1.ObjectMeta{Name: "listed", CreationTimestamp: metav1.NewTime(attackTime)},
		Spec: v1alpha1.WindowsInstanceSpec{Address: "10.0.0.1", DesiredState: v1alpha1.DesiredStateNode,
			Source: v1alpha1.Source{ConfigMapKey: "10.0.0.1"}},
		Status: v1alpha1.WindowsInstanceStatus{
			NodeRef: &v1alpha1.NodeReference{Name: "win-a", UID: "node-uid", Confirmed: true},
			HostKey: &v1alpha1.HostKey{Key: "key"}, Host: &v1alpha1.HostStatus{Name: "win-a", MachineID: "id",
				Addresses: []string{"10.0.0.1", "10.0.1.1"}},
		},
	}
	if change != nil {
		change(&instance)
	}
	return instance
}

var attackTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
