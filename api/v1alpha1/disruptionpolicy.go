package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DisruptionPolicyName is the name of the one WindowsDisruptionPolicy that the operator follows.
const DisruptionPolicyName = "cluster"

// UpgradeStrategy defines how the node of a Machine is upgraded to another version of the operator.
// +kubebuilder:validation:Enum=Replace;InPlace
type UpgradeStrategy string

const (
	// UpgradeReplace deletes the Machine, so that its MachineSet creates a replacement.
	UpgradeReplace UpgradeStrategy = "Replace"
	// UpgradeInPlace changes the host of the Machine, as the hosts of the ConfigMap.
	UpgradeInPlace UpgradeStrategy = "InPlace"
)

// WindowsDisruptionPolicySpec limits how many Windows nodes the operator disrupts at once, and when. An administrator writes it.
type WindowsDisruptionPolicySpec struct {
	// paused stops all disruptions of nodes, except repairs and removals.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// maxUnavailable is the maximum number of Windows nodes that may be unavailable because of the operator, including nodes of Machines and of
	// listed hosts. It is a number, or a percentage of the nodes, rounded down to at least one node.
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]*|[1-9][0-9]?%|100%)$`
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="type(self) == string || (self >= 1 && self <= 2147483647)",message="must be a number from 1, or a percentage"
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// pools limits single pools of nodes further. A pool without an entry has the limit of all nodes.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Pools []DisruptionPool `json:"pools,omitempty"`
	// hostPoolLabel is the key of a Node label that divides the listed hosts into pools: hosts with the same value form a pool. Without it, all
	// listed hosts form one pool.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	HostPoolLabel string `json:"hostPoolLabel,omitempty"`
	// maintenanceWindows are the times in which a disruption may begin. Without any, it may begin at any time.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	MaintenanceWindows []MaintenanceWindow `json:"maintenanceWindows,omitempty"`
	// canarySoak is the time that the first node of a pool must remain Ready with another version of the operator, or with other settings of the
	// cluster, before the other nodes are changed.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(h|m|s|ms)){1,4}$`
	// +optional
	CanarySoak *metav1.Duration `json:"canarySoak,omitempty"`
	// stopOnFailure stops further disruptions while the change of a node has failed.
	// +optional
	StopOnFailure bool `json:"stopOnFailure,omitempty"`
	// failureDeadline is the time after which the change of a node that has not become Ready has failed. Until then, the node counts as unavailable.
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(h|m|s|ms)){1,4}$`
	// +optional
	FailureDeadline *metav1.Duration `json:"failureDeadline,omitempty"`
	// drainTimeout limits the drain of a node. After that time the node is uncordoned, and another node may be disrupted.
	// A drainTimeout that is not shorter than failureDeadline counts as half of failureDeadline.
	// +kubebuilder:default="15m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(h|m|s|ms)){1,4}$`
	// +optional
	DrainTimeout *metav1.Duration `json:"drainTimeout,omitempty"`
	// upgradeStrategy applies to Machines whose MachineSet has no annotation windowsmachineconfig.openshift.io/upgrade-strategy.
	// +kubebuilder:default=Replace
	// +optional
	UpgradeStrategy UpgradeStrategy `json:"upgradeStrategy,omitempty"`
}

// DisruptionPool limits one pool of nodes.
type DisruptionPool struct {
	// name is MachineSet/<name>, or Machines for Machines that no MachineSet controls, or Hosts for the listed hosts. With hostPoolLabel, it is
	// Hosts/<value of the label>, and Hosts for listed hosts without the label.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=270
	Name string `json:"name"`
	// maxUnavailable is a number, or a percentage of the pool's nodes, rounded down to at least one node.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]*|[1-9][0-9]?%|100%)$`
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="type(self) == string || (self >= 1 && self <= 2147483647)",message="must be a number from 1, or a percentage"
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// paused stops the disruptions of this pool.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// MaintenanceWindow is a recurring time window.
type MaintenanceWindow struct {
	// schedule defines the start times of the window, in five fields of cron: "0 2 * * SAT".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	Schedule string `json:"schedule"`
	// duration is the duration of the window.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(h|m|s|ms)){1,4}$`
	Duration metav1.Duration `json:"duration"`
	// timeZone is the time zone of the schedule, such as Europe/Paris. The default is UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
}

// DisruptionCause is the cause of a disruption.
// +kubebuilder:validation:Enum=Upgrade;Configuration;Reboot;KeyChange;Repair;Removal
type DisruptionCause string

// Causes of disruptions.
const (
	// CauseUpgrade is another version of the operator.
	CauseUpgrade DisruptionCause = "Upgrade"
	// CauseConfiguration is another configuration of the cluster.
	CauseConfiguration DisruptionCause = "Configuration"
	// CauseReboot is a restart of the host that an administrator has requested.
	CauseReboot DisruptionCause = "Reboot"
	// CauseKeyChange is a host that does not accept the current SSH key.
	CauseKeyChange DisruptionCause = "KeyChange"
	// CauseRepair is a node that is not Ready.
	CauseRepair DisruptionCause = "Repair"
	// CauseRemoval is a host that its source no longer lists.
	CauseRemoval DisruptionCause = "Removal"
)

// Disruption is a node that the operator disrupts, or a deleted Machine without a replacement in service.
type Disruption struct {
	// instance is the name of the WindowsInstance.
	Instance string `json:"instance"`
	// instanceUID distinguishes the WindowsInstance from another one of the same name.
	InstanceUID types.UID `json:"instanceUID"`
	// node is the name of the Node.
	// +optional
	Node string `json:"node,omitempty"`
	// pool is the pool of the node.
	Pool string `json:"pool"`
	// cause is the cause of the disruption.
	Cause DisruptionCause `json:"cause"`
	// version is the target version of the operator.
	// +optional
	Version string `json:"version,omitempty"`
	// configurationDigest identifies the target settings of the node's services: a digest for each service whose restart affects pods. It is unset
	// if the disruption does not change settings, or while the settings are unknown.
	// +optional
	ConfigurationDigest string `json:"configurationDigest,omitempty"`
	// machine is the name of the Machine that was deleted. It is empty for a change in place.
	// +optional
	Machine string `json:"machine,omitempty"`
	// since is the start time of the disruption. The disruption counts until it ends, or until failureDeadline has passed.
	Since metav1.Time `json:"since"`
	// holderIdentity identifies the process of the operator that works on the node. Only this process, or a process that has adopted the
	// disruption, ends the disruption. Another process removes the entry when the node has been in service for a minute.
	HolderIdentity string `json:"holderIdentity"`
}

// ObservedNode records the time when the operator observed that a node became Ready or NotReady. A kubelet reports times by the clock of its
// host, which may be wrong, so decisions do not use the times of the kubelet.
type ObservedNode struct {
	// instance is the name of the WindowsInstance.
	Instance string `json:"instance"`
	// instanceUID distinguishes the WindowsInstance from another one of the same name.
	InstanceUID types.UID `json:"instanceUID"`
	// ready is true if the node is Ready.
	Ready bool `json:"ready"`
	// since is the time of the first observation of this state, by the clock of the operator.
	Since metav1.Time `json:"since"`
	// kubeletTransitionTime is the time of the change by the clock of the host. After a start, the operator compares it with the current time of the
	// kubelet: a different value means that the node has changed meanwhile.
	// +optional
	KubeletTransitionTime *metav1.Time `json:"kubeletTransitionTime,omitempty"`
}

// WindowsDisruptionPolicyStatus shows the nodes that are being disrupted. Only the operator writes it.
type WindowsDisruptionPolicyStatus struct {
	// observedGeneration is the generation of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// disruptions are the nodes that are disrupted now. Each decision to disrupt another node is written only here: of two
	// concurrent decisions, the API server accepts one.
	// +optional
	// +listType=map
	// +listMapKey=instance
	Disruptions []Disruption `json:"disruptions,omitempty"`
	// observedNodes are the nodes that are not Ready, and the nodes that became Ready less than canarySoak ago.
	// +optional
	// +listType=map
	// +listMapKey=instance
	ObservedNodes []ObservedNode `json:"observedNodes,omitempty"`
	// summary describes the progress of the nodes.
	// +optional
	Summary string `json:"summary,omitempty"`
	// nodes is the number of Windows nodes in service.
	// +optional
	Nodes int32 `json:"nodes"`
	// updated is the number of nodes that have the version of the operator.
	// +optional
	Updated int32 `json:"updated"`
	// failed is the number of nodes whose last change has failed.
	// +optional
	Failed int32 `json:"failed"`
	// conditions are Valid (the spec is valid), Progressing (changes of nodes are pending or in progress) and Stopped (no node is disrupted until
	// an administrator acts).
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Condition types of a WindowsDisruptionPolicy.
const (
	ConditionValid       = "Valid"
	ConditionProgressing = "Progressing"
	ConditionStopped     = "Stopped"
)

// WindowsDisruptionPolicy limits how many Windows nodes the operator disrupts at once, and when, and lists the nodes that are disrupted now. The
// operator follows only the policy named cluster, and creates that policy if an administrator has not.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=windp,singular=windowsdisruptionpolicy,path=windowsdisruptionpolicies
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'cluster'",message="the name must be cluster: the operator uses no other WindowsDisruptionPolicy"
// +kubebuilder:printcolumn:name="Max",type=string,JSONPath=`.spec.maxUnavailable`
// +kubebuilder:printcolumn:name="Paused",type=boolean,JSONPath=`.spec.paused`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updated`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="Summary",type=string,JSONPath=`.status.summary`
type WindowsDisruptionPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec limits how many Windows nodes the operator disrupts at once, and when. An administrator writes it.
	Spec WindowsDisruptionPolicySpec `json:"spec,omitempty"`
	// status shows the nodes that are being disrupted, and the progress of all nodes. Only the operator writes it.
	Status WindowsDisruptionPolicyStatus `json:"status,omitempty"`
}

// WindowsDisruptionPolicyList is a list of WindowsDisruptionPolicies.
// +kubebuilder:object:root=true
type WindowsDisruptionPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WindowsDisruptionPolicy `json:"items"`
}
