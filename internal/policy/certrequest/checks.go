package certrequest

import (
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// nodeCSR is a request by a managed node.
type nodeCSR struct {
	csr        certificatesv1.CertificateSigningRequest
	request    *nodeRequest
	purpose    certificatesv1.KeyUsage
	node       Node
	otherNodes []Node
	cluster    *nodespec.Cluster
}

// requestChecks apply to all requests that a node makes itself.
var requestChecks = []policy.Check[nodeCSR]{
	{Name: "InstanceAmbiguous", Reason: reasonRefused, Violation: ambiguousInstance},
	{Name: "GroupMissing", Reason: reasonRefused, Violation: func(a nodeCSR) string { return missingGroup(a.csr) }},
	{Name: "RequestOutdated", Reason: reasonRefused, Violation: func(a nodeCSR) string { return outdatedRequest(a.csr, a.node) }},
	{Name: "UsagesUnexpected", Reason: reasonRefused, Violation: func(a nodeCSR) string { return unexpectedUsages(a.csr, a.purpose) }},
	{Name: "LifetimeInvalid", Reason: reasonRefused, Violation: func(a nodeCSR) string { return invalidLifetime(a.csr) }},
}

// judgeRequest decides on a request to a signer. It checks that a managed node made the request, that the request is
// not forged, and the rules for all requests, then calls rest.
func judgeRequest(
	csr certificatesv1.CertificateSigningRequest, known Facts, signer string, purpose certificatesv1.KeyUsage,
	rest func(nodeCSR) policy.Decision,
) Decision {
	own := slices.IndexFunc(known.Nodes, func(n Node) bool { return !n.Foreign && IsRequestOf(csr, n.Name) })
	if csr.Spec.SignerName != signer || own < 0 {
		return Decision{Outcome: Ignore}
	}
	asked := nodeCSR{
		csr: csr, purpose: purpose, node: known.Nodes[own], otherNodes: slices.Delete(slices.Clone(known.Nodes), own, own+1),
		cluster: known.Cluster,
	}
	decided := func(outcome Outcome, decision policy.Decision) Decision {
		return Decision{
			Outcome: outcome, NodeName: asked.node.Name, Check: decision.Check, Reason: decision.Reason,
			Message: decision.Message,
		}
	}
	if !asked.node.Registered {
		return decided(Later, policy.Decision{Check: "NodeNotRegistered", Reason: reasonRefused,
			Message: "Node " + asked.node.Name +
				" is not registered, or another host registered it. The operator checks the request again when this host has registered the Node."})
	}
	request, failed := parseRequest(csr.Spec.Request)
	if request == nil {
		return decided(Refuse, failed)
	}
	asked.request = request
	if forged := detectForgery(asked); forged != "" {
		return decided(Deny, policy.Decision{Check: "Impersonation", Reason: reasonRefused, Message: forged})
	}
	decision := policy.Decide(asked, "", requestChecks)
	if decision.Allowed {
		decision = rest(asked)
	}
	if !decision.Allowed {
		return decided(Refuse, decision)
	}
	return decided(Approve, decision)
}

// detectForgery detects the one request that only an attacker makes: a managed node uses its current certificate to
// request the identity of another existing Node.
//
// Why this is proof: the API server has authenticated the node by the node's client certificate, so that the
// requester has the private key. The request is signed, so that the name is unmodified. A kubelet requests a
// certificate for the name that the operator configured at startup, which is never the name of another Node. No other
// approver could rightly approve the request, so that a denial interferes with no approver. A name without a Node
// proves nothing, and neither do wrong addresses: hosts are renamed and renumbered.
func detectForgery(asked nodeCSR) string {
	if missingGroup(asked.csr) != "" || unexpectedSubject(asked.request) != "" {
		return ""
	}
	for _, other := range asked.otherNodes {
		if other.Registered && other.Name != asked.node.Name && asked.request.Subject.CommonName == NodeUser(other.Name) {
			return fmt.Sprintf("With its own certificate, Node %s requested a certificate for Node %s, which is a different node. "+
				"The sender of this request has the private key of Node %s: check that host for unauthorized access.", asked.node.Name,
				other.Name, asked.node.Name)
		}
	}
	return ""
}

// ambiguousInstance refuses a node name that two instances have, because the requesting host is ambiguous.
func ambiguousInstance(asked nodeCSR) string {
	for _, other := range asked.otherNodes {
		if !other.Foreign && other.Name == asked.node.Name {
			return fmt.Sprintf("Two WindowsInstances have the node name %s. Remove one of them from its source.", other.Name)
		}
	}
	return ""
}

// groupsOfNodes are the groups that the API server assigns to a client with a node's certificate.
var groupsOfNodes = []string{nodesOrganization, "system:authenticated"}

func missingGroup(csr certificatesv1.CertificateSigningRequest) string {
	for _, group := range groupsOfNodes {
		if !slices.Contains(csr.Spec.Groups, group) {
			return fmt.Sprintf("The requester %.100s is not in the group %s.", csr.Spec.Username, group)
		}
	}
	return ""
}

// outdatedRequest rejects requests that are older than the binding of the node's name to the host: the name's former
// owner has the private key and would get the certificate. The API server sets the creation time of a request.
func outdatedRequest(csr certificatesv1.CertificateSigningRequest, node Node) string {
	made := csr.CreationTimestamp
	if !made.Time.Before(node.Since) {
		return ""
	}
	return fmt.Sprintf("The request was created at %s, before the node name was assigned to its current host at %s. The kubelet sends a new request.",
		made.UTC().Format(time.RFC3339), node.Since.UTC().Format(time.RFC3339))
}

// unexpectedUsages allows digital signature and the purpose, with or without key encipherment, which kubelets with
// RSA keys also request.
func unexpectedUsages(csr certificatesv1.CertificateSigningRequest, purpose certificatesv1.KeyUsage) string {
	asked := slices.Sorted(slices.Values(csr.Spec.Usages))
	least := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, purpose}
	for _, allowed := range [][]certificatesv1.KeyUsage{least,
		append(slices.Clone(least), certificatesv1.UsageKeyEncipherment)} {
		if slices.Equal(asked, slices.Sorted(slices.Values(allowed))) {
			return ""
		}
	}
	return fmt.Sprintf("The request contains the usages %s; they must be %q and %q, with or without %q.",
		someQuoted(csr.Spec.Usages), certificatesv1.UsageDigitalSignature, purpose, certificatesv1.UsageKeyEncipherment)
}

// Bounds of the requested validity. The minimum is the API server's. The maximum is the default of the Kubernetes
// signers for requests without a validity, such as a kubelet's. Source: kube-controller-manager,
// --cluster-signing-duration.
const (
	minLifetime = 10 * time.Minute
	maxLifetime = 365 * 24 * time.Hour
)

func invalidLifetime(csr certificatesv1.CertificateSigningRequest) string {
	if csr.Spec.ExpirationSeconds == nil {
		return ""
	}
	// Compared in seconds, the unit of the field.
	if seconds := int64(*csr.Spec.ExpirationSeconds); seconds < int64(minLifetime/time.Second) ||
		seconds > int64(maxLifetime/time.Second) {
		return fmt.Sprintf("The request contains a validity of %d seconds; it must be from %s to %s.", seconds,
			minLifetime, maxLifetime)
	}
	return ""
}
