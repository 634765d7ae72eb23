package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// DesiredState is the desired state of a host.
// +kubebuilder:validation:Enum=Node;Unmanaged;Removed
type DesiredState string

const (
	// DesiredStateNode is a host that is a Ready node of the cluster.
	DesiredStateNode DesiredState = "Node"
	// DesiredStateUnmanaged is a host that the operator does not change or monitor: its Machine is being deleted, has failed or has
	// the ignore label.
	DesiredStateUnmanaged DesiredState = "Unmanaged"
	// DesiredStateRemoved is a host restored to its original state; the object is deleted afterwards. The host of a Machine is deleted
	// with the Machine, and not restored.
	DesiredStateRemoved DesiredState = "Removed"
)

// WindowsInstanceSpec identifies the host and defines its desired state. The sources write it (Machines and the ConfigMap
// windows-instances); an administrator may set paused.
type WindowsInstanceSpec struct {
	// address is the IPv4 address or DNS name of the host, from its source.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Address string `json:"address"`
	// username is the administrator that the operator logs in as. If it is empty, the operator does not connect to the host.
	// +optional
	// +kubebuilder:validation:MaxLength=104
	Username string `json:"username,omitempty"`
	// source is the source of the instance.
	Source Source `json:"source"`
	// hostName is the computer name that the operator sets. If it is empty, the host keeps its name.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	HostName string `json:"hostName,omitempty"`
	// node contains labels and taints for the Node, in addition to the labels and taints of every Windows node.
	// +optional
	Node *NodeMetadata `json:"node,omitempty"`
	// desiredState is Node, or Unmanaged if the operator must not manage the host, or Removed if the source no longer lists the host.
	// +kubebuilder:default=Node
	DesiredState DesiredState `json:"desiredState,omitempty"`
	// desiredStateReason is the reason for Unmanaged: MachineDeleting, MachineFailed or MachineIgnored.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	DesiredStateReason string `json:"desiredStateReason,omitempty"`
	// upgradeStrategy defines how the host is upgraded to another version of the operator. Listed hosts, and Machines without a
	// MachineSet, are changed in place.
	// +optional
	// +kubebuilder:default=InPlace
	UpgradeStrategy UpgradeStrategy `json:"upgradeStrategy,omitempty"`
	// paused stops changes to the host.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// Source is the source of an instance. Exactly one field is set.
// +kubebuilder:validation:XValidation:rule="has(self.machine) != has(self.configMapKey)",message="exactly one of machine and configMapKey must be set"
type Source struct {
	// machine is the Machine of the instance in the Machine API.
	// +optional
	Machine *MachineReference `json:"machine,omitempty"`
	// configMapKey is the key in the ConfigMap windows-instances that lists the host.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ConfigMapKey string `json:"configMapKey,omitempty"`
}

// MachineReference names a Machine.
type MachineReference struct {
	// namespace is the namespace of the Machine.
	Namespace string `json:"namespace"`
	// name is the name of the Machine.
	Name string `json:"name"`
	// uid distinguishes this Machine from another Machine with the same name and another host.
	UID types.UID `json:"uid"`
}

// NodeMetadata are labels and taints of a Node, from spec.metadata and spec.taints of its Machine.
type NodeMetadata struct {
	// labels are set on the Node and kept there. A Node may have other labels.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// taints are set on the Node when it joins.
	// +optional
	// +listType=atomic
	Taints []corev1.Taint `json:"taints,omitempty"`
}

// WindowsInstanceStatus shows the progress of the host, and what blocks it. Only the operator writes it.
type WindowsInstanceStatus struct {
	// observedGeneration is the generation of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// summary is the reason of the condition that blocks the instance, or Ready.
	// +optional
	Summary string `json:"summary,omitempty"`
	// nextAction describes the next action of the operator or of an administrator.
	// +optional
	NextAction string `json:"nextAction,omitempty"`
	// step is the step that is in progress.
	// +optional
	Step *StepStatus `json:"step,omitempty"`
	// hostKey is the pinned SSH host key.
	// +optional
	HostKey *HostKey `json:"hostKey,omitempty"`
	// host contains the facts reported by the host.
	// +optional
	Host *HostStatus `json:"host,omitempty"`
	// nodeRef names the Node. It is set before the host is changed, and claims the name.
	// +optional
	NodeRef *NodeReference `json:"nodeRef,omitempty"`
	// registrationID changes when the kubelet must register its Node again. A new value restarts the kubelet, which registers a Node only when it
	// starts. The value is the UID of the last Node that was deleted while its host remained listed, or the time when the kubelet was last
	// restarted because its Node did not register.
	// +optional
	RegistrationID string `json:"registrationID,omitempty"`
	// version is the version of the operator that last configured the host.
	// +optional
	Version string `json:"version,omitempty"`
	// specDigest identifies the NodeSpec that the host matches.
	// +optional
	SpecDigest string `json:"specDigest,omitempty"`
	// configurationDigest identifies the settings of the cluster and of the operator with which the node last passed its checks: a digest for each
	// service whose restart affects pods. Nodes with the same settings have the same digests.
	// +optional
	ConfigurationDigest string `json:"configurationDigest,omitempty"`
	// kubernetes is the minor version of Kubernetes of the node's kubelet and kube-proxy, such as 1.36.
	// +optional
	Kubernetes string `json:"kubernetes,omitempty"`
	// publicKeyHash identifies the configured SSH key of the host.
	// +optional
	PublicKeyHash string `json:"publicKeyHash,omitempty"`
	// restartStartedAt is the time of the last report of a restart by the host. It is unset while no restart is in progress.
	// +optional
	RestartStartedAt *metav1.Time `json:"restartStartedAt,omitempty"`
	// disruptionPending is true while a change of the node waits until the WindowsDisruptionPolicy allows it.
	// +optional
	DisruptionPending bool `json:"disruptionPending,omitempty"`
	// sshKeyRejected is true when the host did not accept the operator's SSH key at the last attempt to connect.
	// +optional
	SSHKeyRejected bool `json:"sshKeyRejected,omitempty"`
	// replacementVersion is the operator version for which the Machine must be replaced. Other versions ignore the field.
	// +optional
	ReplacementVersion string `json:"replacementVersion,omitempty"`
	// readiness is the state on which the operator bases its decisions, instead of the conditions Ready and UpToDate.
	// +optional
	Readiness *Readiness `json:"readiness,omitempty"`
	// failedChange is the last change of the node while it was in service, if the change failed and is still desired.
	// +optional
	FailedChange *FailedChange `json:"failedChange,omitempty"`
	// requestedReboot is a restart in progress that an administrator requested.
	// +optional
	RequestedReboot *RequestedReboot `json:"requestedReboot,omitempty"`
	// certificates are the client certificates of the node's services that the operator renews. The kubelet renews its own certificate.
	// +optional
	// +listType=map
	// +listMapKey=name
	Certificates []CertificateStatus `json:"certificates,omitempty"`
	// conditions are Reachable, Supported, Prepared, Installed, Joined, NetworkReady, Ready and UpToDate.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CertificateStatus is the client certificate of one of the node's services.
type CertificateStatus struct {
	// name is the name of the Windows service.
	Name string `json:"name"`
	// notAfter is the expiry time of the certificate.
	NotAfter metav1.Time `json:"notAfter"`
	// renewAt is the planned time of the renewal.
	RenewAt metav1.Time `json:"renewAt"`
	// issuedAt is the time of the last renewal, by the operator's clock.
	// +optional
	IssuedAt *metav1.Time `json:"issuedAt,omitempty"`
}

// Readiness is the state of a node, and the time of its last change.
type Readiness struct {
	// ready is true while the node is verified and Ready.
	Ready bool `json:"ready"`
	// since is the time of the last change of ready, or of the completion of a later update of a ready host.
	Since metav1.Time `json:"since"`
}

// FailedChange is a failed change of a node in service.
type FailedChange struct {
	// cause is the cause of the change.
	Cause DisruptionCause `json:"cause"`
	// version is the operator version that made the change. Another version retries immediately.
	// +optional
	Version string `json:"version,omitempty"`
	// specDigest identifies the target NodeSpec. Another NodeSpec is applied immediately.
	// +optional
	SpecDigest string `json:"specDigest,omitempty"`
	// configurationDigest identifies the target settings of the node's services. After the first node with these settings has failed, the other
	// nodes are not changed.
	// +optional
	ConfigurationDigest string `json:"configurationDigest,omitempty"`
	// previousDigest identifies the NodeSpec before the change, which is the rollback target. It is empty if the host cannot be rolled back.
	// +optional
	PreviousDigest string `json:"previousDigest,omitempty"`
	// reason is the reason of the failure, as in a condition.
	Reason string `json:"reason"`
	// message describes the failure.
	// +optional
	Message string `json:"message,omitempty"`
	// time is the time of the last failure.
	Time metav1.Time `json:"time"`
	// attempts is the number of failures.
	Attempts int32 `json:"attempts"`
	// drainTimedOut is true if the drain of the node timed out, so that nothing on the host was changed.
	// +optional
	DrainTimedOut bool `json:"drainTimedOut,omitempty"`
	// rolledBack is true if the host was rolled back to its state before the change.
	// +optional
	RolledBack bool `json:"rolledBack,omitempty"`
	// retryAfter is the time of the next retry.
	// +optional
	RetryAfter *metav1.Time `json:"retryAfter,omitempty"`
}

// RequestedReboot is a restart that an administrator has requested.
type RequestedReboot struct {
	// bootID identifies the boot that the restart ends.
	BootID string `json:"bootID"`
	// startedAt is the time of the first request of the operator for the restart.
	StartedAt metav1.Time `json:"startedAt"`
}

// StepStatus is a step in progress.
type StepStatus struct {
	// name is the name of the step in the agent's plan, or a step of the operator.
	Name string `json:"name"`
	// index is the number of the step in the plan, from 1.
	// +optional
	Index int32 `json:"index,omitempty"`
	// total is the number of steps in the plan.
	// +optional
	Total int32 `json:"total,omitempty"`
	// detail is the condition that the step waits for, or the number of bytes transferred.
	// +optional
	Detail string `json:"detail,omitempty"`
	// startedAt is the start time of the step.
	StartedAt metav1.Time `json:"startedAt"`
}

// HostKey is an SSH host key.
type HostKey struct {
	// type is the algorithm, such as ssh-ed25519.
	Type string `json:"type"`
	// key is the public key in base64.
	Key string `json:"key"`
	// fingerprint is the SHA256 fingerprint as ssh-keygen -l prints it.
	Fingerprint string `json:"fingerprint"`
}

// HostStatus are facts of a host.
type HostStatus struct {
	// name is the current host name.
	Name string `json:"name"`
	// domain is the primary DNS suffix of the host, such as corp.example.com. It is empty for a host without a suffix.
	// +optional
	Domain string `json:"domain,omitempty"`
	// product is the Windows product, such as Windows Server 2022 Datacenter.
	// +optional
	Product string `json:"product,omitempty"`
	// build is the Windows build with its revision, such as 10.0.20348.681.
	// +optional
	Build string `json:"build,omitempty"`
	// machineID is the identifier of the Windows installation.
	// +optional
	MachineID string `json:"machineID,omitempty"`
	// bootID differs after each boot.
	// +optional
	BootID string `json:"bootID,omitempty"`
	// addresses are the host's IPv4 addresses, with the address of the default route first. Windows may change their order.
	// +optional
	Addresses []string `json:"addresses,omitempty"`
	// nodeIP is the internal IP address of the Node. The Node keeps it as long as the host has the address, regardless of the order of
	// the addresses.
	// +optional
	NodeIP string `json:"nodeIP,omitempty"`
	// lastReachedAddress is the address at which the operator reached the host when it read these facts. If spec.address resolves to another
	// address, the operator reads the facts again.
	// +optional
	LastReachedAddress string `json:"lastReachedAddress,omitempty"`
}

// NodeReference names a Node.
type NodeReference struct {
	// name is the name of the Node.
	Name string `json:"name"`
	// confirmed is true after the operator verified that no other instance and no other Node has the name. An unconfirmed name is only
	// claimed.
	// +optional
	Confirmed bool `json:"confirmed,omitempty"`
	// claimedAt is the time of an unconfirmed claim. After some minutes the claim no longer counts against an older
	// instance.
	// +optional
	ClaimedAt *metav1.Time `json:"claimedAt,omitempty"`
	// uid is set once the Node exists.
	// +optional
	UID string `json:"uid,omitempty"`
	// machineID is the machine ID of the host that was last configured as this Node.
	// +optional
	MachineID string `json:"machineID,omitempty"`
}

// WindowsInstance represents a Windows host that becomes, is, or ceases to be a node of the cluster.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=winst,singular=windowsinstance
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.spec.address`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.metadata.labels.windowsmachineconfig\.openshift\.io/source`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeRef.name`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="UpToDate",type=string,JSONPath=`.status.conditions[?(@.type=="UpToDate")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.summary`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Next",type=string,priority=1,JSONPath=`.status.nextAction`
type WindowsInstance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec identifies the host and defines its desired state. The sources write it; an administrator may set paused.
	Spec WindowsInstanceSpec `json:"spec"`
	// status shows the progress of the host, and what blocks it. Only the operator writes it.
	Status WindowsInstanceStatus `json:"status,omitempty"`
}

// WindowsInstanceList is a list of WindowsInstances.
// +kubebuilder:object:root=true
type WindowsInstanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WindowsInstance `json:"items"`
}
