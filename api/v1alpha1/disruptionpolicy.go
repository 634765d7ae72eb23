package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DisruptionPolicyName is the name of the one WindowsDisruptionPolicy that the operator follows.
const DisruptionPolicyName = "cluster"

// UpgradeStrategy is how the node of a Machine comes to another version of the operator.
// +kubebuilder:validation:Enum=Replace;InPlace
type UpgradeStrategy string

const (
	// UpgradeReplace deletes the Machine, so that its MachineSet makes another one.
	UpgradeReplace UpgradeStrategy = "Replace"
	// UpgradeInPlace changes the host of the Machine, as it does that of a listed host.
	UpgradeInPlace UpgradeStrategy = "InPlace"
)

// WindowsDisruptionPolicySpec says how many Windows nodes the operator may disturb, and when. It is written by an administrator.
type WindowsDisruptionPolicySpec struct {
	// Paused holds up every disturbance but those that were asked for by taking a host out of its source.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// MaxUnavailable is how many Windows nodes may be unavailable because of the operator, of Machines and listed hosts together: a number,
	// or a percentage of them, rounded down but never less than one.
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]*|[1-9][0-9]?%|100%)$`
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="type(self) == string || (self >= 1 && self <= 2147483647)",message="must be a number from 1 on, or a percentage"
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// Pools are limits of single pools, within that of all nodes. A pool without an entry has the limit of all nodes.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Pools []DisruptionPool `json:"pools,omitempty"`
	// HostPoolLabel is the key of a Node label by which listed hosts are parted into pools: hosts of one value are a pool. Empty: all listed
	// hosts are one.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	HostPoolLabel string `json:"hostPoolLabel,omitempty"`
	// MaintenanceWindows are the times in which nodes may begin to be disturbed; none: at any time.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	MaintenanceWindows []MaintenanceWindow `json:"maintenanceWindows,omitempty"`
	// CanarySoak is how long the first node of a pool must stay Ready with another version of the operator before the others follow.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(h|m|s|ms)){1,4}$`
	// +optional
	CanarySoak *metav1.Duration `json:"canarySoak,omitempty"`
	// StopOnFailure lets no further node be disturbed while one has failed.
	// +optional
	StopOnFailure bool `json:"stopOnFailure,omitempty"`
	// FailureDeadline is how long a node counts as unavailable that does not come back from a change. Then it has failed.
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(h|m|s|ms)){1,4}$`
	// +optional
	FailureDeadline *metav1.Duration `json:"failureDeadline,omitempty"`
	// DrainTimeout is how long the pods of a node may take to leave it. Then it takes pods again, and another node's turn comes. It is part of
	// failureDeadline: where it is not shorter than that, it is half of it.
	// +kubebuilder:default="15m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(h|m|s|ms)){1,4}$`
	// +optional
	DrainTimeout *metav1.Duration `json:"drainTimeout,omitempty"`
	// UpgradeStrategy is that of Machines whose MachineSet has no annotation windowsmachineconfig.openshift.io/upgrade-strategy.
	// +kubebuilder:default=Replace
	// +optional
	UpgradeStrategy UpgradeStrategy `json:"upgradeStrategy,omitempty"`
}

// DisruptionPool limits one pool of nodes.
type DisruptionPool struct {
	// Name is MachineSet/<name>, or Machines for those that no MachineSet controls, or Hosts for all listed hosts; where hostPoolLabel parts
	// those, Hosts/<value of the label>, and Hosts is for those without the label.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=270
	Name string `json:"name"`
	// MaxUnavailable is a number, or a percentage of the pool's nodes, rounded down but never less than one.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]*|[1-9][0-9]?%|100%)$`
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="type(self) == string || (self >= 1 && self <= 2147483647)",message="must be a number from 1 on, or a percentage"
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// Paused holds up this pool.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// MaintenanceWindow is a time that comes again and again.
type MaintenanceWindow struct {
	// Schedule is when it begins, as five fields of cron: "0 2 * * SAT".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	Schedule string `json:"schedule"`
	// Duration is how long it lasts.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(h|m|s|ms)){1,4}$`
	Duration metav1.Duration `json:"duration"`
	// TimeZone is that of the schedule, such as Europe/Paris. Default: UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
}

// DisruptionCause is why a node is disturbed.
// +kubebuilder:validation:Enum=Upgrade;Configuration;Reboot;KeyChange;Repair;Removal
type DisruptionCause string

// Causes of disruptions.
const (
	CauseUpgrade       DisruptionCause = "Upgrade"       // another version of the operator
	CauseConfiguration DisruptionCause = "Configuration" // another configuration of the cluster
	CauseReboot        DisruptionCause = "Reboot"        // an administrator wants the host restarted
	CauseKeyChange     DisruptionCause = "KeyChange"     // the host does not accept the present SSH key
	CauseRepair        DisruptionCause = "Repair"        // the node does not work
	CauseRemoval       DisruptionCause = "Removal"       // the host was taken out of its source
)

// Disruption is a node that the operator disturbs, or a Machine that it has deleted and that is not replaced yet.
type Disruption struct {
	// Instance is the name of the WindowsInstance, and InstanceUID tells it from another one of that name.
	Instance    string    `json:"instance"`
	InstanceUID types.UID `json:"instanceUID"`
	// Node is the name of its Node.
	// +optional
	Node string `json:"node,omitempty"`
	// Pool is the pool of the node.
	Pool string `json:"pool"`
	// Cause is why.
	Cause DisruptionCause `json:"cause"`
	// Version is the version of the operator that the node is brought to.
	// +optional
	Version string `json:"version,omitempty"`
	// Machine is the name of the Machine that was deleted for it; empty for a change in place.
	// +optional
	Machine string `json:"machine,omitempty"`
	// Since is when it began. It counts until it ends, or until failureDeadline has passed.
	Since metav1.Time `json:"since"`
	// Operator is the process that has it. Only that one ends it, or one that has taken it over.
	Operator string `json:"operator"`
}

// WindowsDisruptionPolicyStatus is what is being disturbed. Only the operator writes it.
type WindowsDisruptionPolicyStatus struct {
	// ObservedGeneration is the generation of the spec that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Disruptions are the nodes that are disturbed now. Every decision to disturb one more is written here, and nowhere else: of two that
	// are made at the same time, the API server takes one.
	// +optional
	// +listType=map
	// +listMapKey=instance
	Disruptions []Disruption `json:"disruptions,omitempty"`
	// Summary says in words how far the nodes are.
	// +optional
	Summary string `json:"summary,omitempty"`
	// Nodes are all Windows nodes in service, Updated those with the operator's version, and Failed those whose last change has failed.
	// +optional
	Nodes int32 `json:"nodes"`
	// +optional
	Updated int32 `json:"updated"`
	// +optional
	Failed int32 `json:"failed"`
	// Conditions are Valid (the spec can be followed), Progressing (nodes are to be changed) and Stopped (none is disturbed any more until an
	// administrator does something).
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

// WindowsDisruptionPolicy says how many Windows nodes the operator may disturb at once, and when, and shows which it does. The operator
// makes the one that it follows, named cluster, where an administrator has made none.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=windp,singular=windowsdisruptionpolicy,path=windowsdisruptionpolicies
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'cluster'",message="the operator follows the WindowsDisruptionPolicy named cluster, and no other"
// +kubebuilder:printcolumn:name="Max",type=string,JSONPath=`.spec.maxUnavailable`
// +kubebuilder:printcolumn:name="Paused",type=boolean,JSONPath=`.spec.paused`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updated`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="Summary",type=string,JSONPath=`.status.summary`
type WindowsDisruptionPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WindowsDisruptionPolicySpec   `json:"spec,omitempty"`
	Status WindowsDisruptionPolicyStatus `json:"status,omitempty"`
}

// WindowsDisruptionPolicyList is a list of WindowsDisruptionPolicies.
// +kubebuilder:object:root=true
type WindowsDisruptionPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WindowsDisruptionPolicy `json:"items"`
}
