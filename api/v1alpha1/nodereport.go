package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WindowsNodeReport is what the agent on a Windows node says of its host, in the operator's namespace and named after the Node. The operator
// makes and deletes it; the agent writes its status, and nothing else in the cluster. It is for people, and for events: no decision of the
// operator rests on it, for whoever controls a host controls its report.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=winreport
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Drift",type=string,JSONPath=`.status.drift[0].step`
// +kubebuilder:printcolumn:name="Agent",type=string,JSONPath=`.status.agentVersion`
// +kubebuilder:printcolumn:name="Reported",type=date,JSONPath=`.status.time`
type WindowsNodeReport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Status WindowsNodeReportStatus `json:"status,omitempty"`
}

// NodeReportState is how the agent finds its host.
type NodeReportState string

// States of a host.
const (
	// NodeReportInSync: the host is as its NodeSpec says.
	NodeReportInSync NodeReportState = "InSync"
	// NodeReportDrifted: something differs, and the agent could not put it back, or only the operator can.
	NodeReportDrifted NodeReportState = "Drifted"
)

// WindowsNodeReportStatus is the report. Its bounds are those of the object that an agent in wrong hands can write.
type WindowsNodeReportStatus struct {
	// time is when the agent wrote this: it writes when something has changed, and when it has a new certificate.
	// +optional
	Time metav1.Time `json:"time,omitempty"`
	// agentVersion is the version of the agent.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AgentVersion string `json:"agentVersion,omitempty"`
	// specDigest is the digest of the NodeSpec that the agent holds the host to.
	// +optional
	// +kubebuilder:validation:MaxLength=80
	SpecDigest string `json:"specDigest,omitempty"`
	// state is how the agent finds the host.
	// +optional
	// +kubebuilder:validation:Enum=InSync;Drifted
	State NodeReportState `json:"state,omitempty"`
	// message says what is not as it should be, and why it was not put back.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// drift are the last things that differed, the newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Drift []NodeDrift `json:"drift,omitempty"`
}

// NodeDrift is one thing that differed from the NodeSpec.
type NodeDrift struct {
	// step is the step that puts it back, as in the agent's log and its plan.
	// +kubebuilder:validation:MaxLength=256
	Step string `json:"step"`
	// reason says what differed.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Reason string `json:"reason,omitempty"`
	// time is when it was seen.
	Time metav1.Time `json:"time"`
	// repaired tells whether the agent has put it back.
	// +optional
	Repaired bool `json:"repaired,omitempty"`
}

// WindowsNodeReportList is a list of WindowsNodeReports.
// +kubebuilder:object:root=true
type WindowsNodeReportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WindowsNodeReport `json:"items"`
}
