package machineapi

import (
	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
)

// Namespace is where OpenShift has its Machines.
const Namespace = "openshift-machine-api"

const (
	labelOS           = "machine.openshift.io/os-id"
	labelInstanceType = "machine.openshift.io/instance-type"
	labelRegion       = "machine.openshift.io/region"
	labelZone         = "machine.openshift.io/zone"

	annotationInstanceState = "machine.openshift.io/instance-state"
	// annotationMachine is on the Node and says whose it is.
	annotationMachine = "machine.openshift.io/machine"
	// annotationExcludeDraining lets a Machine go without its node being drained, whatever its value.
	annotationExcludeDraining = "machine.openshift.io/exclude-node-draining"
	// Both name a Machine that is to go first when its set is scaled down, with any value but an empty one. R-043
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

func phase(m *machinev1.Machine) string {
	if m.Status.Phase == nil {
		return ""
	}
	return *m.Status.Phase
}

func failed(m *machinev1.Machine) bool {
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
