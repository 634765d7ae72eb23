package testenv

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	machinev1 "github.com/openshift/api/machine/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/userdata"
)

// Labels and names of the Machine API.
const (
	labelCluster    = "machine.openshift.io/cluster-api-cluster"
	labelMachineSet = "machine.openshift.io/cluster-api-machineset"
	labelRole       = "machine.openshift.io/cluster-api-machine-role"
	labelType       = "machine.openshift.io/cluster-api-machine-type"
	osWindows       = "Windows"
)

// MachineSetOptions describe a Windows MachineSet. The zero value means Windows Server 2022.
type MachineSetOptions struct {
	// Image is the image in the platform's providerSpec: the ID of an AMI, the SKU of an image, the name of a
	// template, or the image of a disk. Its text contains the Windows version: 2019, 2022 or 2025, or a build such as
	// 20348.169. Default: an image with 2022.
	Image string
	// Zone is the zone of the Machines in the platform's notation: us-east-1b on AWS, 2 on Azure, us-central1-b on
	// GCP. Default: the zone of the Linux workers. vSphere and Nutanix have no field for zones.
	Zone string
	// UserDataSecret is the Secret with the user data. Default: windows-user-data.
	UserDataSecret string
	// Labels and Taints are desired on the Machines' nodes. The worker label is always added.
	Labels map[string]string
	Taints []corev1.Taint
	// DeletePolicy determines which Machines are deleted first: Random, Newest or Oldest. Default: Random.
	DeletePolicy string
}

// CreateMachineSet creates a Windows MachineSet from the MachineSet of the Linux workers, as in the guide.
func (r *Environment) CreateMachineSet(ctx context.Context, name string, replicas int32, options MachineSetOptions) error {
	set, err := r.workerMachineSet(ctx)
	if err != nil {
		return fmt.Errorf("make MachineSet %s: %w", name, err)
	}
	set.ObjectMeta = metav1.ObjectMeta{Name: name, Namespace: v1alpha1.MachineNamespace, Labels: set.Labels}
	set.Status = machinev1.MachineSetStatus{}
	set.Spec.Replicas, set.Spec.DeletePolicy = &replicas, options.DeletePolicy
	set.Spec.Selector.MatchLabels[labelMachineSet] = name
	labels := set.Spec.Template.Labels
	labels[labelMachineSet], labels[v1alpha1.LabelMachineOSID] = name, osWindows
	spec := &set.Spec.Template.Spec
	spec.Labels = map[string]string{"node-role.kubernetes.io/worker": ""}
	for key, value := range options.Labels {
		spec.Labels[key] = value
	}
	spec.Taints = options.Taints
	image := cmp.Or(options.Image, defaultImage(r.platform))
	err = changeProviderSpec(spec, func(value map[string]any) error {
		return errors.Join(setImage(r.platform, value, image), setZone(r.platform, value, options.Zone),
			unstructured.SetNestedField(value, cmp.Or(options.UserDataSecret, userdata.SecretName), "userDataSecret", "name"))
	})
	if err != nil {
		return fmt.Errorf("make MachineSet %s: %w", name, err)
	}
	if err := r.strict.Create(ctx, set); err != nil {
		return fmt.Errorf("make MachineSet %s: %w", name, err)
	}
	return nil
}

// workerMachineSet returns the MachineSet that the installation created.
func (r *Environment) workerMachineSet(ctx context.Context) (*machinev1.MachineSet, error) {
	var sets machinev1.MachineSetList
	if err := r.Client.List(ctx, &sets, client.InNamespace(v1alpha1.MachineNamespace)); err != nil {
		return nil, fmt.Errorf("list MachineSets: %w", err)
	}
	for _, set := range sets.Items {
		if set.Spec.Template.Labels[v1alpha1.LabelMachineOSID] == "" {
			return &set, nil
		}
	}
	return nil, fmt.Errorf("the cluster, on platform %s, has no MachineSet for Linux workers: choose a platform with Machines", r.platform)
}

func changeProviderSpec(spec *machinev1.MachineSpec, change func(value map[string]any) error) error {
	var value map[string]any
	if err := json.Unmarshal(spec.ProviderSpec.Value.Raw, &value); err != nil {
		return fmt.Errorf("read the providerSpec: %w", err)
	}
	if err := change(value); err != nil {
		return fmt.Errorf("change the providerSpec: %w", err)
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write the providerSpec: %w", err)
	}
	spec.ProviderSpec.Value = &runtime.RawExtension{Raw: data}
	return nil
}

func defaultImage(platform string) string {
	switch platform {
	case platformAWS:
		return "ami-00000000000002022" // an ID has hexadecimal digits; this one also contains the version
	case platformAzure:
		return "2022-datacenter-core-g2"
	case platformGCP:
		return "projects/windows-cloud/global/images/family/windows-2022-core"
	}
	return "windows-server-2022-template"
}

// setImage sets the image in the platform's providerSpec.
func setImage(platform string, value map[string]any, image string) error {
	switch platform {
	case platformAWS:
		return unstructured.SetNestedField(value, image, "ami", "id")
	case platformAzure:
		return unstructured.SetNestedField(value, map[string]any{
			"publisher": "MicrosoftWindowsServer", "offer": "WindowsServer", "sku": image, "version": "latest", "resourceID": "",
		}, "image")
	case platformGCP:
		disks, _, err := unstructured.NestedSlice(value, "disks")
		if err != nil || len(disks) == 0 {
			return fmt.Errorf("the providerSpec has no disk: %w", err)
		}
		if disk, ok := disks[0].(map[string]any); ok {
			disk["image"] = image
		}
		return unstructured.SetNestedSlice(value, disks, "disks")
	case platformNutanix:
		return unstructured.SetNestedField(value, image, "image", "name")
	}
	return unstructured.SetNestedField(value, image, "template")
}

// Scale sets the replicas of a MachineSet as kubectl scale does.
func (r *Environment) Scale(ctx context.Context, machineSet string, replicas int32) error {
	set := &machinev1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: machineSet}}
	// Controllers write to the object at the same time.
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		scale := &autoscalingv1.Scale{}
		if err := r.Client.SubResource("scale").Get(ctx, set, scale); err != nil {
			return err
		}
		scale.Spec.Replicas = replicas
		return r.Client.SubResource("scale").Update(ctx, set, client.WithSubResourceBody(scale))
	})
	if err != nil {
		return fmt.Errorf("scale MachineSet %s: %w", machineSet, err)
	}
	return nil
}

// DeleteMachine deletes a Machine without waiting for the end of the deletion.
func (r *Environment) DeleteMachine(ctx context.Context, name string) error {
	machine := &machinev1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: name}}
	if err := r.Client.Delete(ctx, machine); err != nil {
		return fmt.Errorf("delete Machine %s: %w", name, err)
	}
	return nil
}

// Machine returns the current Machine from the API server; nil if there is none.
func (r *Environment) Machine(ctx context.Context, name string) (*machinev1.Machine, error) {
	machine := &machinev1.Machine{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: v1alpha1.MachineNamespace, Name: name}, machine)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Machine %s: %w", name, err)
	}
	return machine, nil
}

// Machines returns the Machines of Windows workers of a MachineSet, sorted by name; all of them if machineSet is "".
func (r *Environment) Machines(ctx context.Context, machineSet string) ([]machinev1.Machine, error) {
	return machinesOf(ctx, r.Client, machineSet)
}

func machinesOf(ctx context.Context, reader client.Reader, machineSet string) ([]machinev1.Machine, error) {
	labels := client.MatchingLabels{v1alpha1.LabelMachineOSID: osWindows}
	if machineSet != "" {
		labels[labelMachineSet] = machineSet
	}
	var machines machinev1.MachineList
	if err := reader.List(ctx, &machines, client.InNamespace(v1alpha1.MachineNamespace), labels); err != nil {
		return nil, fmt.Errorf("list Machines: %w", err)
	}
	machines.Items = slices.DeleteFunc(machines.Items, func(m machinev1.Machine) bool { return m.Labels[labelRole] == "master" })
	slices.SortFunc(machines.Items, func(a, b machinev1.Machine) int { return strings.Compare(a.Name, b.Name) })
	return machines.Items, nil
}

// createControlPlaneMachines creates the Machines of the control plane, which the installation creates without a
// MachineSet.
func (r *Environment) createControlPlaneMachines(ctx context.Context) error {
	if !r.options.MachineAPI {
		return nil
	}
	workers, err := r.workerMachineSet(ctx)
	if err != nil {
		return fmt.Errorf("make the Machines of the control plane: %w", err)
	}
	cluster := workers.Labels[labelCluster]
	for i := range r.options.LinuxNodes {
		machine := &machinev1.Machine{ObjectMeta: metav1.ObjectMeta{
			Namespace: v1alpha1.MachineNamespace, Name: fmt.Sprintf("%s-master-%d", cluster, i),
			Labels: map[string]string{labelCluster: cluster, labelRole: "master", labelType: "master"},
		}, Spec: *workers.Spec.Template.Spec.DeepCopy()}
		machine.Spec.Labels = nil
		err := changeProviderSpec(&machine.Spec, func(value map[string]any) error {
			return unstructured.SetNestedField(value, "master-user-data", "userDataSecret", "name")
		})
		if err != nil {
			return fmt.Errorf("make the Machines of the control plane: %w", err)
		}
		if err := r.Client.Create(ctx, machine); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("make the Machines of the control plane: %w", err)
		}
	}
	return nil
}

// readPlatform reads the platform of the cluster.
func (r *Environment) readPlatform(ctx context.Context) error {
	infrastructure := &configv1.Infrastructure{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: "cluster"}, infrastructure); err != nil {
		return fmt.Errorf("read the cluster's platform: %w", err)
	}
	r.platform = string(ptr.Deref(infrastructure.Status.PlatformStatus, configv1.PlatformStatus{Type: platformNone}).Type)
	return nil
}

// Platform returns the cluster's platform, as in Infrastructure.
func (r *Environment) Platform() string { return r.platform }
