package certrequest

import (
	"crypto/x509"
	"net"
	"net/netip"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// on vSphere, the cloud controller writes the guest's full DNS name to the Node, and the kubelet serves
// under this name.
func TestServingRequest_OwnHostNameAndDomainApproved(t *testing.T) {
	const full = "win-a.corp.example.com"
	other := func(name string) corev1.Node {
		n := windowsNode(name, attackTime)
		n.Labels = map[string]string{corev1.LabelOSStable: "linux"}
		return n
	}
	for name, c := range map[string]struct {
		node, host, domain, requested string
		otherNodes                    []corev1.Node
		unknownCluster                bool
		outcome                       Outcome
		check                         string
	}{
		"the full name of a node with a short one":                  {node: "win-a", host: "win-a", domain: "corp.example.com", requested: full, outcome: Approve},
		"in the host's own case":                                    {node: "win-a", host: "WIN-A", domain: "CORP.example.com", requested: "WIN-A.CORP.example.com", outcome: Approve},
		"in lower case, while the host has another":                 {node: "win-a", host: "WIN-A", domain: "CORP.example.com", requested: full, outcome: Approve},
		"the full name of a node of that name":                      {node: full, host: "WIN-A", domain: "corp.example.com", requested: full, outcome: Approve},
		"the short name of a node with a full one":                  {node: full, host: "WIN-A", domain: "corp.example.com", requested: "win-a", outcome: Approve},
		"the new domain of a node with a full name":                 {node: full, host: "win-a", domain: "emea.example.com", requested: "win-a.emea.example.com", outcome: Approve},
		"a domain with the dot of the root":                         {node: "win-a", host: "win-a", domain: "corp.example.com.", requested: full, outcome: Approve},
		"another domain":                                            {node: "win-a", host: "win-a", domain: "corp.example.com", requested: "win-a.example.com", outcome: Refuse, check: "NamesUnknown"},
		"no domain":                                                 {node: "win-a", host: "win-a", requested: full, outcome: Refuse, check: "NamesUnknown"},
		"the domain alone":                                          {node: "win-a", host: "win-a", domain: "corp.example.com", requested: "corp.example.com", outcome: Refuse, check: "NamesUnknown"},
		"another host's name in the same domain":                    {node: "win-a", host: "win-a", domain: "corp.example.com", requested: "win-b.corp.example.com", outcome: Refuse, check: "NamesUnknown"},
		"a host that calls itself by another name than its node":    {node: "win-a", host: "intranet", domain: "corp.example.com", requested: "intranet.corp.example.com", outcome: Refuse, check: "NamesUnknown"},
		"a host that calls itself by the beginning of its node":     {node: full, host: "win", domain: "corp.example.com", requested: "win.corp.example.com", outcome: Refuse, check: "NamesUnknown"},
		"a host that has not said its name":                         {node: full, domain: "corp.example.com", requested: "win-a", outcome: Refuse, check: "NamesUnknown"},
		"a domain by which the cluster's Services go":               {node: "win-a", host: "win-a", domain: "openshift-monitoring.svc", requested: "win-a.openshift-monitoring.svc", outcome: Refuse, check: "ClusterIdentity"},
		"a domain of the cluster's Routes":                          {node: "win-a", host: "win-a", domain: "apps.lab.example.com", requested: "win-a.apps.lab.example.com", outcome: Refuse, check: "ClusterIdentity"},
		"the name of another Node":                                  {node: "win-a", host: "win-a", domain: "corp.example.com", requested: full, otherNodes: []corev1.Node{other(full)}, outcome: Refuse, check: "ForeignIdentity"},
		"a name and domain while the cluster's names are not known": {node: "win-a", host: "win-a", domain: "corp.example.com", requested: full, unknownCluster: true, outcome: Refuse, check: "ClusterIdentity"},
	} {
		t.Run(name, func(t *testing.T) {
			instance := newBoundInstance(func(i *v1alpha1.WindowsInstance) {
				i.Status.NodeRef.Name, i.Status.Host.Name, i.Status.Host.Domain = c.node, c.host, c.domain
			})
			cluster := &nodespec.Cluster{Platform: "VSphere", APIServerInternalURL: "https://api-int.lab.example.com:6443"}
			if c.unknownCluster {
				cluster = nil
			}
			known := FactsOf(&instance, ClusterIdentities{Instances: []v1alpha1.WindowsInstance{instance},
				Nodes: append(c.otherNodes, windowsNode(c.node, attackTime)), Cluster: cluster})
			request := signingRequest(certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth,
				newRequest(t, nil, func(r *x509.CertificateRequest) {
					r.Subject.CommonName = "system:node:" + c.node
					r.DNSNames, r.IPAddresses = []string{c.node, c.requested}, []net.IP{net.IPv4(10, 0, 0, 1)}
				}))
			request.Spec.Username = "system:node:" + c.node
			request.CreationTimestamp.Time = attackTime
			got := judgeServing(request, known)
			if got.Outcome != c.outcome || got.Check != c.check {
				t.Errorf("decision is %+v", got)
			}
		})
	}
	t.Run("no address, whatever the host calls itself", func(t *testing.T) {
		instance := newBoundInstance(func(i *v1alpha1.WindowsInstance) {
			i.Status.NodeRef.Name, i.Status.Host.Name, i.Status.Host.Domain = "10", "10", "0.128.9"
		})
		node := windowsNode("10", attackTime)
		known := FactsOf(&instance, ClusterIdentities{Instances: []v1alpha1.WindowsInstance{instance}, Nodes: []corev1.Node{node}})
		named := netip.MustParseAddr("10.0.128.9")
		if own := known.Nodes[0]; own.Name != "10" || own.Assigned.HasAddress(named) || own.Reported.HasAddress(named) {
			t.Errorf("node %s has %v and %v", own.Name, own.Assigned.Addresses, own.Reported.Addresses)
		}
	})
}
