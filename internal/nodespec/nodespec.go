// Package nodespec holds the desired state of one Windows host as a value. The operator computes and sends the
// NodeSpec, and the agent compares the host with it. The package has no I/O.
package nodespec

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

// SchemaVersion is the version of the JSON form. An agent applies no NodeSpec of another version. held.go defines
// the use of such a NodeSpec that is already on the host.
const SchemaVersion = 1

// NodeSpec is the desired state of a host as a node of the cluster. Equal specs have equal digests.
type NodeSpec struct {
	Schema int `json:"schema"`
	// Instance is the name of the WindowsInstance of the host.
	Instance string `json:"instance"`
	// Version is the operator's version. The version does not change the host and is not part of the digest.
	Version string `json:"version"`
	// HostName is the desired computer name; empty to keep the current name.
	HostName string `json:"hostName,omitempty"`
	// NodeName is the name of the Node object; empty until the host's name is known.
	NodeName string `json:"nodeName"`
	// NodeIP is the IPv4 address of the node.
	NodeIP string `json:"nodeIP,omitempty"`
	// Features are the Windows features that must be enabled.
	Features []string `json:"features,omitempty"`
	// OptionalFeatures are also enabled if this version of Windows has them.
	OptionalFeatures []string `json:"optionalFeatures,omitempty"`
	// Directories are the directories of the node, parents before children.
	Directories []Directory `json:"directories,omitempty"`
	// Releases are the components of the payload, each in a separate directory.
	Releases []Release `json:"releases,omitempty"`
	// Links are symbolic links that keep documented file names valid.
	Links []Link `json:"links,omitempty"`
	// Files are configuration files with their complete content.
	Files []File `json:"files,omitempty"`
	// Environment are machine-wide environment variables.
	Environment map[string]string `json:"environment,omitempty"`
	// Firewall are inbound rules.
	Firewall []host.FirewallRule `json:"firewall,omitempty"`
	// Exclusions are the exclusions from scans by Microsoft Defender Antivirus, if the antivirus is active.
	Exclusions []host.Exclusion `json:"exclusions,omitempty"`
	// TrustedCertificates are certificate authorities that the machine trusts in addition to its own.
	TrustedCertificates []TrustedCertificate `json:"trustedCertificates,omitempty"`
	// Routes are addresses, in CIDR form, that must be reached through the adapter of the default route:
	// 169.254.169.254/32.
	Routes []string `json:"routes,omitempty"`
	// Identity is the kubelet's certificate.
	Identity Identity `json:"identity"`
	// Identities are the certificates of services with a separate certificate.
	Identities []Identity `json:"identities,omitempty"`
	// Reporting configures the host condition that the agent publishes; nil to publish none.
	Reporting *Reporting `json:"reporting,omitempty"`
	// Services are the Windows services in start order.
	Services []Service `json:"services,omitempty"`
	// Logs are the log files that the agent rotates because the writing programs do not.
	Logs []Log `json:"logs,omitempty"`
	// Network is the pod network.
	Network Network `json:"network"`
	// Checks verify that the node works.
	Checks []Check `json:"checks,omitempty"`
}

// Directory is a directory that must exist.
type Directory struct {
	Path   string      `json:"path"`
	Access host.Access `json:"access"`
}

// Release is one component of the payload in a directory named after its content.
type Release struct {
	Component string        `json:"component"` // "kubelet"
	Version   string        `json:"version"`   // "v1.36.3"
	Directory string        `json:"directory"` // C:\k\releases\kubelet-0123456789ab
	Files     []PayloadFile `json:"files"`
}

// PayloadFile is one file of a release.
type PayloadFile struct {
	Name   string `json:"name"` // relative to the release's directory
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// Link is a symbolic link.
type Link struct {
	Path   string `json:"path"`
	Target string `json:"target"`
}

// File is a configuration file.
type File struct {
	Path    string `json:"path"`
	Content string `json:"content,omitempty"`
	// Secret replaces Content for content that only SYSTEM and administrators may read. Secrets contain no
	// placeholders.
	Secret Secret      `json:"secret,omitempty"`
	Access host.Access `json:"access"`
	// Needs lists the inputs that must be known before the file is written. Content contains a placeholder for each
	// of these inputs.
	Needs []Need `json:"needs,omitempty"`
}

// TrustedCertificate is the certificate of an authority.
type TrustedCertificate struct {
	// Fingerprint is the SHA-256 of the certificate in lower-case hex.
	Fingerprint string `json:"fingerprint"`
	// Subject is informational.
	Subject string `json:"subject"`
	// DER is the certificate.
	DER []byte `json:"der"`
}

// Log is a log file that its writer never rotates.
type Log struct {
	Path string `json:"path"`
	// MaxBytes is the file size above which the file is rotated; zero for no limit.
	MaxBytes int64 `json:"maxBytes,omitempty"`
	// MaxAge is the retention period of rotated files; zero means forever.
	MaxAge time.Duration `json:"maxAge,omitempty"`
}

// Need is an input that becomes known only while a host is being configured.
type Need string

const (
	// NeedCertificate is the signed client certificate of the kubelet.
	NeedCertificate Need = "KubeletCertificate"
	// NeedPodSubnet is the pod subnet that the cluster's network assigned to the node.
	NeedPodSubnet Need = "PodSubnet"
	// NeedHNSNetwork is the HNS network of the pods, with the node's subnet. A file with this need is removed while
	// the network is missing, so that no pod starts before the network exists, including after a reboot.
	NeedHNSNetwork Need = "HNSNetwork"
	// NeedSourceVIP is the source address of kube-proxy, on an HNS endpoint. The agent creates the endpoint once
	// the HNS network exists.
	NeedSourceVIP Need = "SourceVIP"
)

// Service is a Windows service with its dependencies.
type Service struct {
	host.ServiceConfig
	// Needs are the inputs that must be known before the service can start.
	Needs []Need `json:"needs,omitempty"`
	// RestartOn are the configuration files that require a restart of the service when they change.
	RestartOn []string `json:"restartOn,omitempty"`
	// DisruptsPods is true if a restart disrupts pods on the node.
	DisruptsPods bool `json:"disturbsPods,omitempty"`
}

// Identity describes a client certificate. The private key is created on the host and never leaves the host.
type Identity struct {
	// Name is the name of the service; empty for the kubelet. Files are named after the service:
	// <name>-client-current.pem.
	Name string `json:"name,omitempty"`
	// Directory is the directory of client-go's certificate file store: C:\var\lib\kubelet\pki.
	Directory string `json:"directory"`
	// CommonName is system:node:<node name> and Organization is system:nodes for the kubelet.
	CommonName   string `json:"commonName"`
	Organization string `json:"organization"`
	// Certificate is the signed certificate in PEM; empty before it is signed. Certificates rotate and are not part
	// of the digest.
	Certificate string `json:"certificate,omitempty"`
}

// Network is the node's part of the pod network.
type Network struct {
	// PodSubnet is the subnet that the hybrid overlay assigned to the node; empty before the assignment.
	PodSubnet string `json:"podSubnet,omitempty"`
	// HNSNetwork is the HNS network that hybrid-overlay-node creates.
	HNSNetwork string `json:"hnsNetwork"`
	// OwnedNetworks are all HNS networks that are deleted with the node.
	OwnedNetworks []string `json:"ownedNetworks,omitempty"`
	// SourceVIPEndpoint is the name of kube-proxy's HNS endpoint.
	SourceVIPEndpoint string `json:"sourceVIPEndpoint"`
}

// CheckKind is the method of a check.
type CheckKind string

// Kinds of checks.
const (
	CheckService          CheckKind = "Service"          // the service runs from its configured command line
	CheckHTTP             CheckKind = "HTTP"             // the URL returns status 200
	CheckContainerRuntime CheckKind = "ContainerRuntime" // the CRI endpoint reports ready
	CheckHNSNetwork       CheckKind = "HNSNetwork"       // the HNS network exists with the node's subnet
	CheckHNSNetworkReach  CheckKind = "HNSNetworkReach"  // HNS reports no other address and no missing HostRoute
	CheckFile             CheckKind = "File"             // the file exists with the desired content
	CheckEndpoint         CheckKind = "Endpoint"         // an endpoint can be created on the HNS network and deleted
	CheckExclusions       CheckKind = "Exclusions"       // Microsoft Defender Antivirus has the exclusions or is off
)

// Check verifies one property of a working node.
type Check struct {
	Name   string    `json:"name"` // "KubeletHealthy"
	Kind   CheckKind `json:"kind"`
	Target string    `json:"target"` // service name, URL, CRI endpoint, network or path
	// ClientCertificate is a file with a certificate and its key in PEM, which the agent presents to servers that
	// request one.
	ClientCertificate string `json:"clientCertificate,omitempty"`
	// Hint is one sentence for the administrator about a failed check.
	Hint string `json:"hint,omitempty"`
	// Advisory checks are reported but do not prevent a node from becoming Ready.
	Advisory bool          `json:"advisory,omitempty"`
	Timeout  time.Duration `json:"timeout,omitempty"` // maximum wait for the check to pass
}

// Digest identifies the configuration in the spec: equal digests mean the same configuration. The operator's
// version and the current certificates are excluded, because they do not change the configuration.
func (s NodeSpec) Digest() string {
	s.Version = ""
	s.Identity.Certificate = ""
	s.Identities = slices.Clone(s.Identities)
	for i := range s.Identities {
		s.Identities[i].Certificate = ""
	}
	encoded, err := json.Marshal(s)
	if err != nil {
		// Marshal fails only for unsupported types. NodeSpec has none, as a test verifies.
		panic(fmt.Sprintf("encode NodeSpec: %v", err))
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:])
}

// Encode returns the JSON form that is sent to the host.
func (s NodeSpec) Encode() ([]byte, error) { return json.MarshalIndent(s, "", "  ") }

// Decode decodes the JSON form and rejects other schema versions.
func Decode(data []byte) (NodeSpec, error) {
	var s NodeSpec
	if err := json.Unmarshal(data, &s); err != nil {
		return NodeSpec{}, fmt.Errorf("decode NodeSpec: %w", err)
	}
	if s.Schema != SchemaVersion {
		return NodeSpec{}, fmt.Errorf("the NodeSpec has schema version %d, but this agent supports %d: operator and agent are of different releases", s.Schema, SchemaVersion)
	}
	return s, nil
}
