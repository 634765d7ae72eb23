// Package nodespec holds the desired state of one Windows host as a value: the operator computes it from the cluster
// and sends it, and the agent compares the host with it. The package has no I/O.
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

// SchemaVersion is the version of the JSON form. An agent brings no host to a spec of another version; what it does with
// one that lies on the host is in held.go.
const SchemaVersion = 1

// NodeSpec is everything that a host must have to be a node of the cluster. Two equal specs have equal digests.
type NodeSpec struct {
	Schema int `json:"schema"`
	// Instance is the name of the WindowsInstance that the spec belongs to.
	Instance string `json:"instance"`
	// Version is the operator's version. It does not change the host, so it is no part of the digest.
	Version string `json:"version"`
	// HostName is the computer name that the host must have; empty keeps the one it has.
	HostName string `json:"hostName,omitempty"`
	// NodeName is the name of the Node object. Empty until the host has been asked for its name.
	NodeName string `json:"nodeName"`
	// NodeIP is the IPv4 address under which the node serves.
	NodeIP string `json:"nodeIP,omitempty"`
	// Features are the Windows features that must be enabled.
	Features []string `json:"features,omitempty"`
	// OptionalFeatures are enabled too where this Windows knows them.
	OptionalFeatures []string `json:"optionalFeatures,omitempty"`
	// Directories are the folders that the node uses, parents before children.
	Directories []Directory `json:"directories,omitempty"`
	// Releases are the components of the payload, each in a folder of its own.
	Releases []Release `json:"releases,omitempty"`
	// Links are symbolic links that keep documented file names valid.
	Links []Link `json:"links,omitempty"`
	// Files are configuration files with their whole content.
	Files []File `json:"files,omitempty"`
	// Environment are machine-wide environment variables.
	Environment map[string]string `json:"environment,omitempty"`
	// Firewall are inbound rules.
	Firewall []host.FirewallRule `json:"firewall,omitempty"`
	// Exclusions are what Microsoft Defender Antivirus leaves out of its scans, where it is at work.
	Exclusions []host.Exclusion `json:"exclusions,omitempty"`
	// TrustedCertificates are certificate authorities that the whole machine trusts, besides its own.
	TrustedCertificates []TrustedCertificate `json:"trustedCertificates,omitempty"`
	// Routes are addresses that must be reached through the adapter of the default route, in CIDR form:
	// 169.254.169.254/32.
	Routes []string `json:"routes,omitempty"`
	// Identity is the kubelet's certificate.
	Identity Identity `json:"identity"`
	// Identities are the certificates of services that have one of their own.
	Identities []Identity `json:"identities,omitempty"`
	// Reporting says how the agent publishes the condition of its host; nil when it does not.
	Reporting *Reporting `json:"reporting,omitempty"`
	// Services are the Windows services in the order in which they start.
	Services []Service `json:"services,omitempty"`
	// Logs are the log files that the agent rotates, because those that write them do not.
	Logs []Log `json:"logs,omitempty"`
	// Network is the pod network.
	Network Network `json:"network"`
	// Checks prove that the node works.
	Checks []Check `json:"checks,omitempty"`
}

// Directory is a folder that must exist.
type Directory struct {
	Path   string      `json:"path"`
	Access host.Access `json:"access"`
}

// Release is one component of the payload in a folder named after its content.
type Release struct {
	Component string        `json:"component"` // "kubelet"
	Version   string        `json:"version"`   // "v1.36.3"
	Directory string        `json:"directory"` // C:\k\releases\kubelet-0123456789ab
	Files     []PayloadFile `json:"files"`
}

// PayloadFile is one file of a release.
type PayloadFile struct {
	Name   string `json:"name"` // relative to the release's folder
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
	// Secret is the content in place of Content, where nobody may see it but SYSTEM and administrators. It has no
	// placeholders.
	Secret Secret      `json:"secret,omitempty"`
	Access host.Access `json:"access"`
	// Needs names what must be known before the file can be written; its content holds placeholders for it until then.
	Needs []Need `json:"needs,omitempty"`
}

// TrustedCertificate is the certificate of an authority.
type TrustedCertificate struct {
	// Fingerprint is the SHA-256 of the certificate in lower-case hex.
	Fingerprint string `json:"fingerprint"`
	// Subject is for people to read.
	Subject string `json:"subject"`
	// DER is the certificate.
	DER []byte `json:"der"`
}

// Log is a log file that its writer appends to and never rotates.
type Log struct {
	Path string `json:"path"`
	// MaxBytes is the size above which the file is rotated; zero for no limit.
	MaxBytes int64 `json:"maxBytes,omitempty"`
	// MaxAge is how long rotated files are kept; zero means forever.
	MaxAge time.Duration `json:"maxAge,omitempty"`
}

// Need is an input that the operator learns only while a host is being configured.
type Need string

const (
	// NeedCertificate is the signed client certificate of the kubelet.
	NeedCertificate Need = "KubeletCertificate"
	// NeedPodSubnet is the pod subnet that the cluster's network assigned to the node.
	NeedPodSubnet Need = "PodSubnet"
	// NeedHNSNetwork is the HNS network of the pods, with the node's subnet. A file that needs it is taken away while the
	// network is not there, so that no pod starts before it, after a reboot either.
	NeedHNSNetwork Need = "HNSNetwork"
	// NeedSourceVIP is the address of the HNS endpoint from which kube-proxy sends. The agent itself makes it, once the
	// HNS network is there.
	NeedSourceVIP Need = "SourceVIP"
)

// Service is a Windows service with its dependencies.
type Service struct {
	host.ServiceConfig
	// Needs must be met before the service can start.
	Needs []Need `json:"needs,omitempty"`
	// RestartOn are the configuration files whose change needs a restart of the service.
	RestartOn []string `json:"restartOn,omitempty"`
	// DisturbsPods is true when a restart interrupts pods on the node.
	DisturbsPods bool `json:"disturbsPods,omitempty"`
}

// Identity describes a client certificate. Its private key is made on the host and never leaves it.
type Identity struct {
	// Name is the name of the service; empty for the kubelet. Files are named after it: <name>-client-current.pem.
	Name string `json:"name,omitempty"`
	// Directory is where client-go's certificate file store looks: C:\var\lib\kubelet\pki.
	Directory string `json:"directory"`
	// CommonName is system:node:<node name>, Organization system:nodes for the kubelet.
	CommonName   string `json:"commonName"`
	Organization string `json:"organization"`
	// Certificate is the signed certificate in PEM, once there is one. It is not part of the digest: it rotates.
	Certificate string `json:"certificate,omitempty"`
}

// Network is the node's part of the pod network.
type Network struct {
	// PodSubnet is what the hybrid overlay assigned to the node; empty until it has.
	PodSubnet string `json:"podSubnet,omitempty"`
	// HNSNetwork is the HNS network that hybrid-overlay-node makes.
	HNSNetwork string `json:"hnsNetwork"`
	// OwnedNetworks are all HNS networks that are taken away with the node.
	OwnedNetworks []string `json:"ownedNetworks,omitempty"`
	// SourceVIPEndpoint is the name of kube-proxy's HNS endpoint.
	SourceVIPEndpoint string `json:"sourceVIPEndpoint"`
}

// CheckKind is the way in which a check looks at the node.
type CheckKind string

// Kinds of checks.
const (
	CheckService          CheckKind = "Service"          // the service runs from its configured command line
	CheckHTTP             CheckKind = "HTTP"             // the address answers 200
	CheckContainerRuntime CheckKind = "ContainerRuntime" // the CRI endpoint says ready
	CheckHNSNetwork       CheckKind = "HNSNetwork"       // the HNS network is there with the node's subnet
	CheckHNSNetworkReach  CheckKind = "HNSNetworkReach"  // HNS reports neither another address than the node's nor a lack of HostRoute
	CheckFile             CheckKind = "File"             // the file is there with the desired content
	CheckEndpoint         CheckKind = "Endpoint"         // an endpoint can be made on the HNS network and removed again
	CheckExclusions       CheckKind = "Exclusions"       // Microsoft Defender Antivirus has the exclusions, or is not at work
)

// Check is one proof that the node works.
type Check struct {
	Name   string    `json:"name"` // "KubeletHealthy"
	Kind   CheckKind `json:"kind"`
	Target string    `json:"target"` // service name, URL, CRI endpoint, network or path
	// ClientCertificate is a file with a certificate and its key in PEM, which the agent shows to a server that asks for one.
	ClientCertificate string `json:"clientCertificate,omitempty"`
	// Hint is what an administrator may look at when the check does not pass; one sentence.
	Hint string `json:"hint,omitempty"`
	// Advisory checks are reported but do not keep a node from becoming Ready.
	Advisory bool          `json:"advisory,omitempty"`
	Timeout  time.Duration `json:"timeout,omitempty"` // how long the agent may wait for the check to pass
}

// Digest identifies the configuration in the spec: equal digests mean the same configuration. It leaves out the
// operator's version and the present certificate, because neither changes the configuration.
func (s NodeSpec) Digest() string {
	s.Version = ""
	s.Identity.Certificate = ""
	s.Identities = slices.Clone(s.Identities)
	for i := range s.Identities {
		s.Identities[i].Certificate = ""
	}
	encoded, err := json.Marshal(s)
	if err != nil {
		// Only unsupported types make Marshal fail; the type has none, and a test pins that.
		panic(fmt.Sprintf("encode NodeSpec: %v", err))
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:])
}

// Encode writes the spec in the JSON form that travels to the host.
func (s NodeSpec) Encode() ([]byte, error) { return json.MarshalIndent(s, "", "  ") }

// Decode reads the JSON form and refuses another schema version.
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
