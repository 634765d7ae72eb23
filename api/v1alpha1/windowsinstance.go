package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// DesiredState is what an instance should be.
// +kubebuilder:validation:Enum=Node;Unmanaged;Removed
type DesiredState string

const (
	// DesiredStateNode is a host that is a Ready node of the cluster.
	DesiredStateNode DesiredState = "Node"
	// DesiredStateUnmanaged leaves host and Node alone: the Machine that the host belongs to is being deleted, has failed or is to be
	// ignored.
	DesiredStateUnmanaged DesiredState = "Unmanaged"
	// DesiredStateRemoved is a host given back as it was; the object is deleted when that is done. The host of a Machine is gone with
	// its Machine, so that nothing is given back there.
	DesiredStateRemoved DesiredState = "Removed"
)

// WindowsInstanceSpec says which host this is and what it should be. It is written by the sources (Machines and the ConfigMap
// windows-instances); a user may set paused.
type WindowsInstanceSpec struct {
	// Address is the IPv4 address or DNS name under which the host is reached, as its source gives it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Address string `json:"address"`
	// Username is the administrator that the operator logs in as. Empty when the source names none: then nothing is done.
	// +optional
	// +kubebuilder:validation:MaxLength=104
	Username string `json:"username,omitempty"`
	// Source is where the instance comes from.
	Source Source `json:"source"`
	// HostName is the computer name that the host is given; empty leaves the one it has.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	HostName string `json:"hostName,omitempty"`
	// Node is what the source wants its Node to carry besides what every Windows node has.
	// +optional
	Node *NodeMetadata `json:"node,omitempty"`
	// DesiredState is Node; Unmanaged while the source wants the host left alone; or Removed once the source no longer lists the host.
	// +kubebuilder:default=Node
	DesiredState DesiredState `json:"desiredState,omitempty"`
	// DesiredStateReason says why the host is Unmanaged: MachineDeleting, MachineFailed or MachineIgnored.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	DesiredStateReason string `json:"desiredStateReason,omitempty"`
	// UpgradeStrategy is how the host comes to another version of the operator. Listed hosts, and Machines that no MachineSet would make
	// again, are changed in place.
	// +optional
	// +kubebuilder:default=InPlace
	UpgradeStrategy UpgradeStrategy `json:"upgradeStrategy,omitempty"`
	// Paused stops the operator from touching the host until it is false again.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// Source is where an instance comes from. Exactly one field is set.
// +kubebuilder:validation:XValidation:rule="has(self.machine) != has(self.configMapKey)",message="exactly one of machine and configMapKey must be set"
type Source struct {
	// Machine is the Machine of the Machine API that the instance was made for.
	// +optional
	Machine *MachineReference `json:"machine,omitempty"`
	// ConfigMapKey is the key in the ConfigMap windows-instances that lists the host.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ConfigMapKey string `json:"configMapKey,omitempty"`
}

// MachineReference names a Machine.
type MachineReference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID tells this Machine from another one of the same name, which is another host.
	UID types.UID `json:"uid"`
}

// NodeMetadata are labels and taints of a Node, as spec.metadata and spec.taints of its Machine give them.
type NodeMetadata struct {
	// Labels are set on the Node and kept there. A Node may have others.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Taints are set on the Node when it joins.
	// +optional
	// +listType=atomic
	Taints []corev1.Taint `json:"taints,omitempty"`
}

// WindowsInstanceStatus is how far the host is, and why. Only the operator writes it.
type WindowsInstanceStatus struct {
	// ObservedGeneration is the generation of the spec that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Summary is the reason of the condition that stands in the way of Ready, or Ready.
	// +optional
	Summary string `json:"summary,omitempty"`
	// NextAction says in words what happens next, or what an administrator must do.
	// +optional
	NextAction string `json:"nextAction,omitempty"`
	// Step is what is being done right now.
	// +optional
	Step *StepStatus `json:"step,omitempty"`
	// HostKey is the pinned SSH host key.
	// +optional
	HostKey *HostKey `json:"hostKey,omitempty"`
	// Host are the facts that the host told of itself.
	// +optional
	Host *HostStatus `json:"host,omitempty"`
	// NodeRef names the Node. It is set before the host is changed: a claim to the name.
	// +optional
	NodeRef *NodeReference `json:"nodeRef,omitempty"`
	// Registration is the UID of the Node that was deleted last while its host stayed listed. A change restarts the kubelet, which
	// registers a Node only when it starts.
	// +optional
	Registration string `json:"registration,omitempty"`
	// Version is the operator version that configured the host last.
	// +optional
	Version string `json:"version,omitempty"`
	// SpecDigest identifies the NodeSpec that the host was brought to.
	// +optional
	SpecDigest string `json:"specDigest,omitempty"`
	// PublicKeyHash identifies the SSH key that the host was configured with.
	// +optional
	PublicKeyHash string `json:"publicKeyHash,omitempty"`
	// restartStartedAt is when the host last said that it restarts. It is absent when no restart is awaited.
	// +optional
	RestartStartedAt *metav1.Time `json:"restartStartedAt,omitempty"`
	// waitsForTurn is true while a change of the node waits until the WindowsDisruptionPolicy allows it.
	// +optional
	WaitsForTurn bool `json:"waitsForTurn,omitempty"`
	// keyRefused is true when the host did not accept the operator's SSH key at the last attempt to connect.
	// +optional
	KeyRefused bool `json:"keyRefused,omitempty"`
	// awaitsVersion is the version of the operator for which the Machine of the host is to be replaced. Other versions ignore it.
	// +optional
	AwaitsVersion string `json:"awaitsVersion,omitempty"`
	// FailedChange is the last attempt to change the node while it was in service, if it failed and nothing has changed since.
	// +optional
	FailedChange *FailedChange `json:"failedChange,omitempty"`
	// RequestedReboot is a restart that an administrator has asked for and that is under way.
	// +optional
	RequestedReboot *RequestedReboot `json:"requestedReboot,omitempty"`
	// Certificates are those client certificates of the node's services that the operator renews. The kubelet renews its own.
	// +optional
	// +listType=map
	// +listMapKey=name
	Certificates []CertificateStatus `json:"certificates,omitempty"`
	// Conditions are Reachable, Supported, Prepared, Installed, Joined, NetworkReady, Ready and UpToDate.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CertificateStatus is the client certificate of one of the node's services.
type CertificateStatus struct {
	// Name is that of the Windows service.
	Name string `json:"name"`
	// NotAfter is when the certificate expires.
	NotAfter metav1.Time `json:"notAfter"`
	// RenewAt is when the operator replaces it.
	RenewAt metav1.Time `json:"renewAt"`
}

// FailedChange is an attempt to change a node in service that failed.
type FailedChange struct {
	// Cause is why the node was to be changed.
	Cause DisruptionCause `json:"cause"`
	// Version is the operator's that has tried it, and SpecDigest identifies the NodeSpec that the host was to be brought to. Another of
	// either is tried at once.
	// +optional
	Version string `json:"version,omitempty"`
	// +optional
	SpecDigest string `json:"specDigest,omitempty"`
	// PreviousDigest identifies what the host was before, and is brought back to. Empty when there is no way back.
	// +optional
	PreviousDigest string `json:"previousDigest,omitempty"`
	// Reason says what went wrong, as the reason of a condition.
	Reason string `json:"reason"`
	// Message says what went wrong.
	// +optional
	Message string `json:"message,omitempty"`
	// Time is when it failed last.
	Time metav1.Time `json:"time"`
	// Attempts is how often it has failed.
	Attempts int32 `json:"attempts"`
	// DrainTimedOut is true when the pods of the node did not leave in time, so that nothing on the host was changed.
	// +optional
	DrainTimedOut bool `json:"drainTimedOut,omitempty"`
	// RolledBack is true when the host is again what it was before.
	// +optional
	RolledBack bool `json:"rolledBack,omitempty"`
	// RetryAfter is when the operator tries it again by itself.
	// +optional
	RetryAfter *metav1.Time `json:"retryAfter,omitempty"`
}

// RequestedReboot is a restart that an administrator has asked for.
type RequestedReboot struct {
	// BootID is that of the boot which the restart is to end.
	BootID string `json:"bootID"`
	// StartedAt is when the host was told to restart first.
	StartedAt metav1.Time `json:"startedAt"`
}

// StepStatus is a step in progress.
type StepStatus struct {
	// Name is the step's name as in the agent's plan, or a phase of the operator.
	Name string `json:"name"`
	// Index and Of tell how far the plan is.
	// +optional
	Index int32 `json:"index,omitempty"`
	// +optional
	Of int32 `json:"of,omitempty"`
	// Detail is what is waited for, or how many bytes are done.
	// +optional
	Detail string `json:"detail,omitempty"`
	// StartedAt is when the step began.
	StartedAt metav1.Time `json:"startedAt"`
}

// HostKey is an SSH host key.
type HostKey struct {
	// Type is the algorithm, such as ssh-ed25519.
	Type string `json:"type"`
	// Key is the public key in base64.
	Key string `json:"key"`
	// Fingerprint is the SHA256 fingerprint as ssh-keygen -l prints it.
	Fingerprint string `json:"fingerprint"`
}

// HostStatus are facts of a host.
type HostStatus struct {
	// Name is the host name in force.
	Name string `json:"name"`
	// Product is the Windows product, such as Windows Server 2022 Datacenter.
	// +optional
	Product string `json:"product,omitempty"`
	// Build is the Windows build with its revision, such as 10.0.20348.681.
	// +optional
	Build string `json:"build,omitempty"`
	// MachineID is the Windows installation's own identifier.
	// +optional
	MachineID string `json:"machineID,omitempty"`
	// BootID differs after each boot.
	// +optional
	BootID string `json:"bootID,omitempty"`
	// Addresses are the host's IPv4 addresses, that of the default route first.
	// +optional
	Addresses []string `json:"addresses,omitempty"`
}

// NodeReference names a Node.
type NodeReference struct {
	Name string `json:"name"`
	// Confirmed is true once no other instance and no other Node was found to have the name. A name that is not confirmed is only
	// claimed.
	// +optional
	Confirmed bool `json:"confirmed,omitempty"`
	// UID is set once the Node exists.
	// +optional
	UID string `json:"uid,omitempty"`
}

// WindowsInstance is one Windows host that is, or is becoming, or ceases to be, a node of the cluster.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=winst,singular=windowsinstance
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.spec.address`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.metadata.labels.windowsmachineconfig\.openshift\.io/source`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeRef.name`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.summary`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Next",type=string,priority=1,JSONPath=`.status.nextAction`
type WindowsInstance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WindowsInstanceSpec   `json:"spec"`
	Status WindowsInstanceStatus `json:"status,omitempty"`
}

// WindowsInstanceList is a list of WindowsInstances.
// +kubebuilder:object:root=true
type WindowsInstanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WindowsInstance `json:"items"`
}
