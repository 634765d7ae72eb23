package nodecondition

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
)

func driftRepaired(instance *v1alpha1.WindowsInstance, node *corev1.Node, message string) recorder.Event {
	return recorder.Normal(instance, node, "DriftRepaired", "Report",
		"The host of Node "+node.Name+" differed from its NodeSpec. "+message)
}

func driftNotRepaired(instance *v1alpha1.WindowsInstance, node *corev1.Node, message string) recorder.Event {
	return recorder.Warning(instance, node, "DriftNotRepaired", "Report",
		"The host of Node "+node.Name+" differs from its NodeSpec: "+message)
}
