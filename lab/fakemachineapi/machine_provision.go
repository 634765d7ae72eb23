package fakemachineapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// provisionMachine requests the Machine's virtual machine from the cloud. An error means a retry. If no retry can
// succeed, the Machine is Failed afterwards.
func (r *machineReconciler) provisionMachine(ctx context.Context, m *machinev1.Machine, spec providerSpec, id string) error {
	before := m.DeepCopy()
	m.Status.Phase = ptr.To(machinev1.PhaseProvisioning)
	setCondition(&m.Status.Conditions, r.Clock.Now(), falseCondition(machinev1.InstanceExistsCondition,
		machinev1.ConditionSeverityWarning, machinev1.InstanceNotCreatedReason, "Instance has not been created"))
	if err := r.saveMachine(ctx, before, m); err != nil {
		return err
	}
	data, err := r.userData(ctx, spec)
	if err == nil {
		err = r.Cloud.Create(ctx, VirtualMachine{
			ID: id, MachineName: m.Name, Platform: r.Platform, OperatingSystem: operatingSystem(m), Image: spec.Image,
			Zone: spec.Zone, Subnet: spec.Subnet,
			ProviderID: providerID(r.Platform, m.Name, id, spec), UserData: data,
		})
	}
	if err == nil {
		r.events.Eventf(m, nil, corev1.EventTypeNormal, "Create", "Create", "Created Machine %s", m.Name)
		return nil
	}
	failure := falseCondition(machinev1.MachineCreation, machinev1.ConditionSeverityError,
		machinev1.MachineCreationFailedConditionReason, err.Error())
	if isPermanent(err) {
		return r.setFailed(ctx, m, machinev1.CreateMachineError, err.Error(), failure)
	}
	before = m.DeepCopy()
	setCondition(&m.Status.Conditions, r.Clock.Now(), failure)
	if saveErr := r.saveMachine(ctx, before, m); saveErr != nil {
		return saveErr
	}
	r.events.Eventf(m, nil, corev1.EventTypeWarning, "FailedCreate", "Create", "%s", err.Error())
	return fmt.Errorf("make the virtual machine of %s: %w", m.Name, err)
}

// userData returns the user data in the Secret of the providerSpec.
func (r *machineReconciler) userData(ctx context.Context, spec providerSpec) ([]byte, error) {
	if spec.UserDataSecret == "" {
		return nil, nil
	}
	secret := &corev1.Secret{}
	if err := r.live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: spec.UserDataSecret}, secret); err != nil {
		return nil, fmt.Errorf("read the user data: %w", err)
	}
	data, ok := secret.Data[userDataKey]
	if !ok {
		return nil, fmt.Errorf("read the user data: the Secret %s has no key %s", spec.UserDataSecret, userDataKey)
	}
	return data, nil
}

// applyVMStatus records the state of the virtual machine in m.
func (r *machineReconciler) applyVMStatus(m *machinev1.Machine, spec providerSpec, id string, vm VirtualMachineStatus) {
	labels := map[string]string{}
	for key, value := range map[string]string{labelInstanceType: spec.InstanceType, labelRegion: spec.Region,
		labelZone: spec.Zone} {
		if value != "" {
			labels[key] = value
		}
	}
	m.Labels = mergeMaps(m.Labels, labels)
	m.Annotations = mergeMaps(m.Annotations, map[string]string{annotationInstanceState: vm.State})
	if vm.ProviderID != "" {
		m.Spec.ProviderID = ptr.To(vm.ProviderID)
	}
	if len(vm.Addresses) > 0 {
		m.Status.Addresses = vm.Addresses
	}
	status, err := json.Marshal(map[string]string{"instanceId": id, "instanceState": vm.State})
	if err == nil {
		m.Status.ProviderStatus = &runtime.RawExtension{Raw: status}
	}
	now := r.Clock.Now()
	setCondition(&m.Status.Conditions, now, trueCondition(machinev1.InstanceExistsCondition, ""))
	created := trueCondition(machinev1.MachineCreation, "Machine successfully created")
	created.Reason = machinev1.MachineCreationSucceededConditionReason
	setCondition(&m.Status.Conditions, now, created)
}

func mergeMaps(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b)
	return all
}

// saveMachine writes the differences between before and m, if any. Metadata and spec have other writers, so a
// concurrent change is a conflict; the status has no other writer.
func (r *machineReconciler) saveMachine(ctx context.Context, before, m *machinev1.Machine) error {
	status := m.Status.DeepCopy()
	if !equality.Semantic.DeepEqual(before.ObjectMeta, m.ObjectMeta) || !equality.Semantic.DeepEqual(before.Spec, m.Spec) {
		if err := r.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	m.Status = *status
	if equality.Semantic.DeepEqual(before.Status, *status) {
		return nil
	}
	base := m.DeepCopy()
	base.Status = before.Status
	m.Status.LastUpdated = ptr.To(metav1.NewTime(r.Clock.Now()))
	return client.IgnoreNotFound(r.Status().Patch(ctx, m, client.MergeFrom(base)))
}
