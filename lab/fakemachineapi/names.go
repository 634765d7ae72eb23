package fakemachineapi

import (
	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
)

// Namespace is the namespace of Machines in OpenShift.
const Namespace = "openshift-machine-api"

const (
	labelOS           = "machine.openshift.io/os-id"
	labelInstanceType = "machine.openshift.io/instance-type"
	labelRegion       = "machine.openshift.io/region"
	labelZone         = "machine.openshift.io/zone"

	annotationInstanceState = "machine.openshift.io/instance-state"
	// annotationMachine on a Node contains the name of its Machine.
	annotationMachine = "machine.openshift.io/machine"
	// annotationExcludeDraining disables the drain before a Machine is deleted, with any value.
	annotationExcludeDraining = "machine.openshift.io/exclude-node-draining"
	// Both mark a Machine that is deleted first at a scale-down, with any value except an empty one. R-043
	annotationDelete    = "machine.openshift.io/delete-machine"
	annotationDeleteOld = "machine.openshift.io/cluster-api-delete-machine"

	userDataKey = "userData"
)

func operatingSystem(m *machinev1.Machine) string {
	if m.Labels[labelOS] == Windows {
		return Windows
	}
	return Linux
}

func currentPhase(m *machinev1.Machine) string {
	if m.Status.Phase == nil {
		return ""
	}
	return *m.Status.Phase
}

func hasFailed(m *machinev1.Machine) bool {
	return m.Status.ErrorReason != nil || m.Status.ErrorMessage != nil
}

func nodeCondition(node *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == kind {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}
