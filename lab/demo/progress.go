package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// hostBoard is the last known state of all instances and Windows Machines.
type hostBoard struct {
	instances map[string]*v1alpha1.WindowsInstance
	machines  map[string]*machinev1.Machine
}

// updateState stores the current state and returns a line for each changed host.
func (b *hostBoard) updateState(instances []v1alpha1.WindowsInstance, machines []machinev1.Machine) (changed []string) {
	next := hostBoard{instances: map[string]*v1alpha1.WindowsInstance{}, machines: map[string]*machinev1.Machine{}}
	for i := range machines {
		now := &machines[i]
		next.machines[now.Name] = now
		if before := b.machines[now.Name]; before == nil || machineLine(before) != machineLine(now) {
			changed = append(changed, machineLine(now))
		}
	}
	for i := range instances {
		now := &instances[i]
		next.instances[now.Name] = now
		if before := b.instances[now.Name]; before == nil || instanceLine(before) != instanceLine(now) {
			changed = append(changed, instanceLine(now))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.instances)) {
		if before := b.instances[name]; next.instances[name] == nil {
			changed = append(changed, formatLine(name, before.Spec.Address, "removed", "", describeRemoval(before)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.machines)) {
		if before := b.machines[name]; next.machines[name] == nil {
			changed = append(changed, formatLine(name, internalAddress(before), "deleted", "", "the Machine is gone, and its virtual machine with it"))
		}
	}
	*b = next
	return changed
}

// hasAllReady reports whether at least the expected number of hosts exists and all hosts are Ready.
func (b *hostBoard) hasAllReady(expected int) bool {
	for _, instance := range b.instances {
		if !isReady(instance) {
			return false
		}
	}
	return len(b.instances) >= expected
}

func isReady(instance *v1alpha1.WindowsInstance) bool {
	return testenv.IsReady(instance) && instance.Spec.DesiredState != v1alpha1.DesiredStateRemoved
}

// instanceLine returns the state of an instance.
func instanceLine(instance *v1alpha1.WindowsInstance) string {
	status, ready := instance.Status, isReady(instance)
	summary, progress, detail := cmp.Or(status.Summary, "New"), "", notReadyReason(instance)
	if summary == v1alpha1.ReasonReady && !ready { // the status does not reflect the last spec change yet
		summary = "Changed"
	}
	if ready && status.NodeRef != nil {
		detail = "node " + status.NodeRef.Name
	}
	if step := status.Step; step != nil && !ready {
		if detail = step.Name; step.Detail != "" {
			detail += ": " + step.Detail
		}
		if step.Total > 0 {
			progress = fmt.Sprintf("%d/%d", step.Index, step.Total)
		}
	}
	return formatLine(instance.Name, instance.Spec.Address, summary, progress, detail)
}

func machineLine(machine *machinev1.Machine) string {
	return formatLine(machine.Name, internalAddress(machine), "Machine "+ptr.Deref(machine.Status.Phase, "is new"), "", ptr.Deref(machine.Status.ErrorMessage, ""))
}

func formatLine(name, address, status, progress, detail string) string {
	text := fmt.Sprintf("%s (%s): %s", name, cmp.Or(address, "no address yet"), status)
	if progress != "" {
		text += " " + progress
	}
	if detail != "" {
		text += ", " + detail
	}
	return text
}

func internalAddress(machine *machinev1.Machine) string {
	for _, address := range machine.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return address.Address
		}
	}
	return ""
}

// describeRemoval returns the result for the host of a deleted instance; "" if the instance may be created again.
func describeRemoval(instance *v1alpha1.WindowsInstance) string {
	switch {
	case instance.Spec.DesiredState != v1alpha1.DesiredStateRemoved && (instance.Spec.Source.Machine == nil || instance.Spec.DesiredState == v1alpha1.DesiredStateNode):
		return ""
	case instance.Spec.Source.Machine != nil:
		return "its Machine is gone"
	case instance.Status.HostKey == nil:
		return "the host was never reached"
	case instance.Annotations[v1alpha1.AnnotationForgetHost] == "true":
		return "the host was left as it is"
	}
	return "the host was restored"
}

// notReadyReason returns the reason why an instance is not Ready.
func notReadyReason(instance *v1alpha1.WindowsInstance) string {
	for _, condition := range instance.Status.Conditions {
		if condition.Status != metav1.ConditionTrue && condition.Reason == instance.Status.Summary {
			return condition.Message
		}
	}
	return instance.Status.NextAction
}
