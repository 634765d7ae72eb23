// Package machineset generates Windows MachineSets according to the guides: a pure function from facts of a
// cluster to an object of the Machine API. Network, security groups and identities come from an existing worker
// MachineSet; all other names derive from the infrastructure name, as in the installer.
package machineset

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// Labels of the Machine API.
const (
	LabelCluster     = machinev1beta1.MachineClusterIDLabel
	LabelMachineSet  = "machine.openshift.io/cluster-api-machineset"
	LabelMachineRole = nodeidentity.LabelMachineRole
	LabelMachineType = "machine.openshift.io/cluster-api-machine-type"
	// RoleWorker is the value of LabelMachineRole and LabelMachineType on workers.
	RoleWorker = "worker"
)

// Options describes the desired MachineSet.
type Options struct {
	// Platform is AWS, Azure, GCP or VSphere.
	Platform configv1.PlatformType
	// InfrastructureName is status.infrastructureName of Infrastructure cluster.
	InfrastructureName string
	// Version is the year of the Windows Server release, from Versions.
	Version string
	// Image is the boot image of the instances: an AMI on AWS, publisher:offer:sku:version or a resource ID on
	// Azure, the path of an image on GCP, the path of a template on vSphere. Empty selects the platform's own
	// image of the version; AWS and vSphere have none.
	Image string
	// Name is the name of the MachineSet; empty for the default name of the guides.
	Name string
	// Replicas is the number of Machines, 0 or more.
	Replicas int32
	// Zone is the availability zone; empty means Worker's zone.
	Zone string
	// Worker is spec.template.spec.providerSpec.value of a MachineSet for Linux workers of the cluster.
	Worker *runtime.RawExtension
}

// platforms maps the platforms with Windows MachineSets to the functions for their provider specs.
var platforms = map[configv1.PlatformType]func(Options) (any, error){
	configv1.AWSPlatformType:     awsProviderSpec,
	configv1.AzurePlatformType:   azureProviderSpec,
	configv1.GCPPlatformType:     gcpProviderSpec,
	configv1.VSpherePlatformType: vsphereProviderSpec,
}

// Generate generates the MachineSet. An error names the missing or wrong value, and its source.
func Generate(o Options) (*machinev1beta1.MachineSet, error) {
	if o.Replicas < 0 {
		return nil, fmt.Errorf("the number of replicas is %d, but must be at least 0", o.Replicas)
	}
	if err := CheckSupported(o.Platform, o.Version); err != nil {
		return nil, err
	}
	name, err := Name(o)
	if err != nil {
		return nil, err
	}
	spec, err := platforms[o.Platform](o)
	if err != nil {
		return nil, err
	}
	value, err := encodeProviderSpec(spec)
	if err != nil {
		return nil, err
	}
	return machineSet(o, name, value), nil
}

// machineSet returns the parts of a Windows MachineSet that are common to all platforms.
func machineSet(o Options, name string, value []byte) *machinev1beta1.MachineSet {
	selector := map[string]string{LabelCluster: o.InfrastructureName, LabelMachineSet: name}
	return &machinev1beta1.MachineSet{
		TypeMeta: metav1.TypeMeta{APIVersion: machinev1beta1.GroupVersion.String(), Kind: "MachineSet"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: v1alpha1.MachineNamespace,
			Labels:      map[string]string{LabelCluster: o.InfrastructureName},
			Annotations: capacityAnnotations(o.Version),
		},
		Spec: machinev1beta1.MachineSetSpec{
			Replicas: &o.Replicas,
			Selector: metav1.LabelSelector{MatchLabels: selector},
			Template: machinev1beta1.MachineTemplateSpec{
				ObjectMeta: machinev1beta1.ObjectMeta{Labels: map[string]string{
					LabelCluster: o.InfrastructureName, LabelMachineSet: name,
					LabelMachineRole: RoleWorker, LabelMachineType: RoleWorker,
					v1alpha1.LabelMachineOSID: v1alpha1.MachineOSIDWindows,
				}},
				Spec: machinev1beta1.MachineSpec{
					ObjectMeta:   machinev1beta1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelWorker: ""}},
					ProviderSpec: machinev1beta1.ProviderSpec{Value: &runtime.RawExtension{Raw: value}},
				},
			},
		},
	}
}

func unsupportedPlatform(platform configv1.PlatformType) error {
	instead := "Write the MachineSet manually"
	if !rulesOf(platform).Machines {
		instead = "Windows Machines are not supported on this platform: list hosts in the ConfigMap windows-instances instead"
	}
	return fmt.Errorf("cannot generate a MachineSet for platform %q, only for AWS, Azure, GCP and VSphere. %s", platform,
		instead)
}
