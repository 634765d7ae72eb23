package certrequest

import (
	"crypto/x509"
	"net"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// cloudCase is a node's request for a value that its Node has from the cloud.
type cloudCase struct {
	platform, providerID string // default: an instance on AWS
	kind                 corev1.NodeAddressType
	value                string
	more                 []corev1.NodeAddress
	outcome              Outcome
	check                string
}

const awsID = "aws:///us-east-2a/i-0abc123def"

var (
	externalIP, externalDNS, internalDNS = corev1.NodeExternalIP, corev1.NodeExternalDNS, corev1.NodeInternalDNS

	cloudCases = map[string]cloudCase{
		"its public address":      {kind: externalIP, value: "18.219.7.9", outcome: Approve},
		"its public IPv6 address": {kind: externalIP, value: "2600:1f16::9", outcome: Approve},
		"the public name of its public address": {kind: externalDNS, value: "ec2-18-219-7-9.us-east-2.compute.amazonaws.com",
			more: []corev1.NodeAddress{{Type: externalIP, Address: "18.219.7.9"}}, outcome: Approve},
		"the same in the first region": {kind: externalDNS, value: "ec2-18-219-7-9.compute-1.amazonaws.com",
			more: []corev1.NodeAddress{{Type: externalIP, Address: "18.219.7.9"}}, outcome: Approve},
		"the private name of its address": {kind: internalDNS, value: "ip-10-0-0-1.us-east-2.compute.internal",
			outcome: Approve},
		"the same in the first region, in capitals": {kind: internalDNS, value: "IP-10-0-0-1.EC2.Internal", outcome: Approve},
		"the name of its instance": {kind: internalDNS, value: "i-0abc123def.us-east-2.compute.internal",
			outcome: Approve},
		"its name on GCP": {platform: "GCP", providerID: "gce://project/us-east1-b/win-a",
			kind: internalDNS, value: "win-a.us-east1-b.c.project.internal", outcome: Approve},
		"its older name on GCP": {platform: "GCP", providerID: "gce://project/us-east1-b/win-a",
			kind: internalDNS, value: "win-a.c.project.internal", outcome: Approve},
		"its name on Azure": {platform: "Azure", providerID: "azure:///subscriptions/x/win-a",
			kind: internalDNS, value: "win-a.x1y2.bx.internal.cloudapp.net", outcome: Approve},
		"its public name on Azure": {platform: "Azure", providerID: "azure:///subscriptions/x/win-a",
			kind: externalDNS, value: "win-a.eastus.cloudapp.azure.com", outcome: Approve},

		"the public address of another node": {kind: externalIP, value: "18.219.7.10", outcome: Refuse,
			check: "ForeignIdentity"},
		"a name of another node": {kind: internalDNS, value: "ip-10-0-0-2.ec2.internal", outcome: Refuse,
			check: "ForeignIdentity"},
		"the private name of another address": {kind: internalDNS, value: "ip-10-0-0-77.ec2.internal",
			outcome: Refuse, check: "NamesUnknown"},
		"the public name of another address": {kind: externalDNS, value: "ec2-18-219-7-77.us-east-2.compute.amazonaws.com",
			outcome: Refuse, check: "NamesUnknown"},
		"the name of no address": {kind: internalDNS, value: "ip-10-0-0-999.ec2.internal",
			outcome: Refuse, check: "NamesUnknown"},
		"the name of another instance": {kind: internalDNS, value: "i-0abc.us-east-2.compute.internal",
			outcome: Refuse, check: "NamesUnknown"},
		"an address before the cloud knows it": {providerID: "none", kind: externalIP, value: "18.219.7.9", outcome: Refuse,
			check: "AddressesUnknown"},
		"an address where there is no cloud": {platform: "None", kind: externalIP, value: "18.219.7.9", outcome: Refuse,
			check: "AddressesUnknown"},
		"another cloud's machine": {platform: "GCP", kind: externalIP, value: "18.219.7.9", outcome: Refuse,
			check: "AddressesUnknown"},
		"an address that it calls internal": {kind: corev1.NodeInternalIP, value: "18.219.7.9", outcome: Refuse,
			check: "AddressesUnknown"},

		"loopback": {kind: externalIP, value: "127.0.0.1", outcome: Refuse,
			check: "AddressesUnknown"},
		"IPv6 loopback": {kind: externalIP, value: "::1", outcome: Refuse, check: "AddressesUnknown"},
		"a private address": {kind: externalIP, value: "10.0.0.9", outcome: Refuse,
			check: "AddressesUnknown"},
		"a private IPv6 address": {kind: externalIP, value: "fd00::1", outcome: Refuse,
			check: "AddressesUnknown"},
		"the metadata service": {kind: externalIP, value: "169.254.169.254", outcome: Refuse,
			check: "AddressesUnknown"},
		"OVN-Kubernetes' own network": {kind: externalIP, value: "100.64.0.2", outcome: Refuse,
			check: "AddressesUnknown"},
		"the address of kubernetes.default": {kind: externalIP, value: "172.30.0.1", outcome: Refuse,
			check: "AddressesUnknown"},
		"a service network that is no private one": {kind: externalIP, value: "44.0.0.1", outcome: Refuse,
			check: "AddressesUnknown"},
		"the API server's address": {kind: externalIP, value: "3.16.5.4", outcome: Refuse,
			check: "AddressesUnknown"},
		"every address": {kind: externalIP, value: "0.0.0.0", outcome: Refuse,
			check: "AddressesUnknown"},
		"a group of addresses": {kind: externalIP, value: "224.0.0.1", outcome: Refuse,
			check: "AddressesUnknown"},

		"api": {kind: externalDNS, value: "api.lab.example.com",
			outcome: Refuse, check: "NamesUnknown"},
		"api-int": {kind: internalDNS, value: "api-int.lab.example.com",
			outcome: Refuse, check: "NamesUnknown"},
		"api-int in the cloud's domain": {kind: internalDNS, value: "api-int.us-east-2.compute.internal",
			outcome: Refuse, check: "NamesUnknown"},
		"kubernetes.default": {kind: internalDNS, value: "kubernetes.default.svc",
			outcome: Refuse, check: "NamesUnknown"},
		"localhost": {kind: internalDNS, value: "localhost", outcome: Refuse, check: "NamesUnknown"},
		"the API server's load balancer": {kind: externalDNS, value: "lab-int-0123.elb.us-east-2.amazonaws.com",
			outcome: Refuse, check: "NamesUnknown"},
		"a service of AWS": {kind: externalDNS, value: "s3.us-east-2.amazonaws.com",
			outcome: Refuse, check: "NamesUnknown"},
		"a name that holds the cloud's": {kind: internalDNS, value: "ip-10-0-0-1.ec2.internal.example.com",
			outcome: Refuse, check: "NamesUnknown"},
		"the metadata service of GCP": {platform: "GCP", providerID: "gce://p/z/win-a", kind: internalDNS,
			value: "metadata.google.internal", outcome: Refuse, check: "NamesUnknown"},
		"another machine on GCP": {platform: "GCP", providerID: "gce://p/z/win-a", kind: internalDNS,
			value: "master-0.us-east1-b.c.project.internal", outcome: Refuse, check: "NamesUnknown"},
		"api-int on GCP": {platform: "GCP", providerID: "gce://p/z/win-a", kind: internalDNS,
			value: "api-int.lab.corp.internal", outcome: Refuse, check: "NamesUnknown"},
		"the API server's public name on Azure": {platform: "Azure", providerID: "azure:///x", kind: externalDNS,
			value: "lab-x7k2p.eastus.cloudapp.azure.com", outcome: Refuse, check: "NamesUnknown"},
	}
)

//
func TestServingRequest_CloudAddressesOfListedHosts(t *testing.T) {
	for name, c := range cloudCases {
		t.Run(name, func(t *testing.T) {
			platform, id := c.platform, c.providerID
			if platform == "" {
				platform = "AWS"
			}
			if id == "" {
				id = awsID
			}
			cluster := nodespec.Cluster{
				Platform: platform, APIServerInternalURL: "https://3.16.5.4:6443",
				ServiceCIDRs: []string{"172.30.0.0/16", "44.0.0.0/24"},
				Network:      nodespec.ClusterNetwork{HybridClusterNetworks: []string{"10.132.0.0/14"}},
			}
			node := nodeNamed("win-a", func(n *corev1.Node) {
				n.Spec.ProviderID = id
				n.Status.Addresses = append(c.more, corev1.NodeAddress{Type: c.kind, Address: c.value})
			})
			own := Node{Name: "win-a", Registered: true, Assigned: newNames("win-a", "10.0.0.1"), Reported: newNames("10.0.0.2")}
			own.AddCloudAddresses(node, cluster)
			known := Facts{Cluster: &cluster, Nodes: []Node{own, {
				Name: "master-0", Foreign: true, Assigned: newNames("master-0", "ip-10-0-0-2.ec2.internal", "18.219.7.10"),
			}}}
			request := signingRequest(certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth,
				newRequest(t, nil, func(r *x509.CertificateRequest) {
					withNames(r)
					if address := net.ParseIP(c.value); address != nil {
						r.IPAddresses = append(r.IPAddresses, address)
					} else {
						r.DNSNames = append(r.DNSNames, c.value)
					}
				}))
			expectOutcome(t, judgeServing(request, known), c.outcome, c.check)
		})
	}
}

func nodeNamed(name string, change func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{},
		Annotations: map[string]string{}}}
	if change != nil {
		change(node)
	}
	return node
}
