package nodespec

import "strings"

// Files read by clients of the API server.
const (
	kubeconfigFile  = Root + `\kubeconfig`
	apiServerCAFile = Root + `\bootstrap-ca.crt`
)

// ServiceIdentity is the identity of a service at the API server.
type ServiceIdentity struct {
	// Service is the name of the Windows service.
	Service string
	// User and Group are the subject of the service's certificate; <node> represents the node's name.
	User, Group string
	// Kubeconfig is the file that the service reads on start; empty for the agent, which reads none.
	Kubeconfig string
	// Directory holds the certificate.
	Directory string
	// Rights are the allowed API requests, and the source of this permission.
	Rights string
}

const nodePlaceholder = "<node>"

// identityTable lists all identities of programs on a node. Programs not listed here (containerd, windows_exporter,
// csi-proxy) have no identity and do not connect to the API server. No program on a node has a token.
var identityTable = []ServiceIdentity{
	{
		Service: ServiceKubelet, User: "system:node:" + nodePlaceholder, Group: "system:nodes",
		Kubeconfig: kubeconfigFile, Directory: pkiDirectory,
		Rights: "its own Node, and the objects used by its pods: the node authorizer and the admission plugin NodeRestriction",
	},
	{
		// Bootstraps with the kubelet's certificate. OVN's approver and admission webhook belong to the cluster and
		// are not changed.
		Service: ServiceHybridOverlay, User: "system:ovn-node:" + nodePlaceholder, Group: "system:ovn-nodes",
		Kubeconfig: kubeconfigFile, Directory: hybridOverlayPKI,
		Rights: "reads Nodes and Pods, and annotates its own Node: OVN-Kubernetes' own roles and its webhook",
	},
	{
		Service: ServiceKubeProxy, User: "system:node:" + nodePlaceholder, Group: "system:nodes",
		Kubeconfig: kubeconfigFile, Directory: pkiDirectory,
		// Uses the kubelet's certificate.
		Rights: "reads Services and EndpointSlices: the cluster role system:node-proxier, which OpenShift grants to all nodes",
	},
	{
		Service: ServiceCloudNodeManager, User: "system:cloud-node-manager:" + nodePlaceholder, Group: "system:cloud-node-managers",
		Kubeconfig: cloudNodeManagerKubeconfig, Directory: cloudNodeManagerPKI,
		Rights: "reads and patches Nodes and their status: the cluster role windows-machine-config-operator-cloud-node-manager",
	},
	{
		Service: ServiceAgent, User: "system:node:" + nodePlaceholder, Group: "system:nodes",
		Directory: pkiDirectory,
		// Uses the kubelet's certificate.
		Rights: "writes only the condition " + ConditionConfiguration +
			" of its Node: the node authorizer and NodeRestriction",
	},
}

// IdentityTable lists the identity and the rights of every service that connects to the API server.
func IdentityTable() []ServiceIdentity { return append([]ServiceIdentity(nil), identityTable...) }

// identityOf returns the table entry of a service.
func identityOf(service string) ServiceIdentity {
	for _, identity := range identityTable {
		if identity.Service == service {
			return identity
		}
	}
	// Callers pass only services of this package.
	panic("the service " + service + " has no identity")
}

// newIdentity returns the identity of a service, without the signed certificate.
func newIdentity(in Inputs, service string) Identity {
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

// additionalIdentities returns the identities that the operator signs in addition to the kubelet's. OVN-Kubernetes
// signs the identity of hybrid-overlay-node.
func additionalIdentities(in Inputs) []Identity {
	if in.Cluster.Platform != platformAzure {
		return nil
	}
	return []Identity{newIdentity(in, ServiceCloudNodeManager)}
}

// clientFiles returns the files that a client of the API server reads only on start. Clients read the referenced
// certificate again when it rotates.
func clientFiles(service string) []string {
	return []string{identityOf(service).Kubeconfig, apiServerCAFile}
}

func clientFileList(in Inputs) []File {
	return []File{newInheritedFile(apiServerCAFile, in.Cluster.APIServerCA),
		newInheritedFile(kubeconfigFile, encodeKubeconfig(in, ServiceKubelet))}
}

// encodeKubeconfig returns a kubeconfig with the certificate of a service and the internal API server only.
func encodeKubeconfig(in Inputs, service string) string {
	certificate := newIdentity(in, service).Path(CurrentCertificate)
	return encodeJSON(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "node",
		"clusters": []object{{"name": "cluster", "cluster": object{
			"server": in.Cluster.APIServerInternalURL, "certificate-authority": apiServerCAFile}}},
		"users":    []object{{"name": "node", "user": object{"client-certificate": certificate, "client-key": certificate}}},
		"contexts": []object{{"name": "node", "context": object{"cluster": "cluster", "user": "node"}}},
	})
}
