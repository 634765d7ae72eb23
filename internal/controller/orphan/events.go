package orphan

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
)

// nodeWithoutInstance reports that the host of a Node is no longer maintained, and the next action.
func nodeWithoutInstance(node *corev1.Node, namespace string) recorder.Event {
	var message strings.Builder
	message.WriteString("The operator has configured this node, but ")
	if bound := node.Annotations[v1alpha1.AnnotationInstance]; bound != "" {
		message.WriteString("its WindowsInstance " + bound + " in namespace " + namespace + " was deleted")
	} else {
		message.WriteString("no WindowsInstance in namespace " + namespace + " refers to it")
	}
	message.WriteString(": the operator neither monitors its host nor removes it. ")
	if _, cordoned := node.Annotations[v1alpha1.AnnotationCordoned]; cordoned {
		message.WriteString("It is unschedulable, because the operator was draining it. ")
	}
	if _, listed := node.Labels[v1alpha1.LabelBYOH]; listed {
		message.WriteString("To manage the host again, list it in ConfigMap windows-instances under the same address as before; " +
			"to remove the host, then delete that entry. ")
	} else {
		message.WriteString("If its Machine exists, remove the label " + v1alpha1.LabelIgnore +
			" from the Machine to manage the host again, or uncordon the Node: oc adm uncordon " + node.Name + ". ")
	}
	message.WriteString("If the host no longer exists, delete the Node.")
	return recorder.Warning(node, nil, "NodeWithoutInstance", "Watch", message.String())
}
