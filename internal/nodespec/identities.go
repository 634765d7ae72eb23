package nodespec

import "strings"

// Files that clients of the API server read.
const (
	kubeconfigFile  = Root + `\kubeconfig`
	apiServerCAFile = Root + `\bootstrap-ca.crt`
)

// ServiceIdentity is the identity of a service at the API server.
type ServiceIdentity struct {
	// Service is the name of the Windows service.
	Service string
	// User and Group are what its certificate says; <node> stands for the node's name.
	User, Group string
	// Kubeconfig is the file that it reads at its start; empty for the agent, which reads none.
	Kubeconfig string
	// Directory holds the certificate.
	Directory string
	// Rights are what the API server lets it do, and what gives it the right.
	Rights string
}

const nodePlaceholder = "<node>"

// identityTable is all that programs on a node are to the cluster. What is not in it (containerd, windows_exporter,
// csi-proxy) has no identity and does not speak with the API server. Nothing on a node has a token.
var identityTable = []ServiceIdentity{
	{
		Service: ServiceKubelet, User: "system:node:" + nodePlaceholder, Group: "system:nodes",
		Kubeconfig: kubeconfigFile, Directory: pkiDirectory,
		Rights: "its own Node, and the objects that the pods on it use: the node authorizer and the admission plugin NodeRestriction",
	},
	{
		// It bootstraps with the kubelet's certificate. OVN's approver and admission webhook are the cluster's, and are left
		// as they are.
		Service: ServiceHybridOverlay, User: "system:ovn-node:" + nodePlaceholder, Group: "system:ovn-nodes",
		Kubeconfig: kubeconfigFile, Directory: hybridOverlayPKI,
		Rights: "reads Nodes and Pods, and annotates its own Node: OVN-Kubernetes' own roles and its webhook",
	},
	{
		Service: ServiceKubeProxy, User: "system:node:" + nodePlaceholder, Group: "system:nodes",
		Kubeconfig: kubeconfigFile, Directory: pkiDirectory,
		// It goes by the kubelet's certificate.
		Rights: "reads Services and EndpointSlices: the cluster role system:node-proxier, which OpenShift gives to all nodes",
	},
	{
		Service: ServiceCloudNodeManager, User: "system:cloud-node-manager:" + nodePlaceholder, Group: "system:cloud-node-managers",
		Kubeconfig: cloudNodeManagerKubeconfig, Directory: cloudNodeManagerPKI,
		Rights: "reads and patches Nodes and their status: the cluster role windows-machine-config-operator-cloud-node-manager",
	},
	{
		Service: ServiceAgent, User: "system:node:" + nodePlaceholder, Group: "system:nodes",
		Directory: pkiDirectory,
		// It goes by the kubelet's certificate.
		Rights: "writes the condition " + ConditionConfiguration +
			" of its Node, and nothing else: the node authorizer and NodeRestriction",
	},
}

// IdentityTable lists the identity and the rights of every service that connects to the API server.
func IdentityTable() []ServiceIdentity { return append([]ServiceIdentity(nil), identityTable...) }

// identityOf returns the service's line in the table.
func identityOf(service string) ServiceIdentity {
	for _, identity := range identityTable {
		if identity.Service == service {
			return identity
		}
	}
	// Only services of this package are asked for.
	panic("the service " + service + " has no identity")
}

// identity returns the certificate that the operator has signed for a service.
func identity(in Inputs, service string) Identity {
	line := identityOf(service)
	name := service
	if service == ServiceKubelet {
		name = ""
	}
	return Identity{
		Name: name, Directory: line.Directory,
		CommonName: strings.ReplaceAll(line.User, nodePlaceholder, in.Instance.NodeName), Organization: line.Group,
	}
}

// identities are those besides the kubelet's. That of hybrid-overlay-node is not among them: OVN-Kubernetes signs it.
func identities(in Inputs) []Identity {
	if in.Cluster.Platform != platformAzure {
		return nil
	}
	return []Identity{identity(in, ServiceCloudNodeManager)}
}

// clientFiles are read once, at their start, by the clients of the API server. The certificate that they lead to is
// read again as it rotates.
func clientFiles(service string) []string {
	return []string{identityOf(service).Kubeconfig, apiServerCAFile}
}

func clientFileList(in Inputs) []File {
	return []File{inherited(apiServerCAFile, in.Cluster.APIServerCA),
		inherited(kubeconfigFile, kubeconfig(in, ServiceKubelet))}
}

// kubeconfig leads to the certificate of a service, and only to the internal API server.
func kubeconfig(in Inputs, service string) string {
	certificate := identity(in, service).Path(CurrentCertificate)
	return encode(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "node",
		"clusters": []object{{"name": "cluster", "cluster": object{
			"server": in.Cluster.APIServerInternalURL, "certificate-authority": apiServerCAFile}}},
		"users":    []object{{"name": "node", "user": object{"client-certificate": certificate, "client-key": certificate}}},
		"contexts": []object{{"name": "node", "context": object{"cluster": "cluster", "user": "node"}}},
	})
}
