package machineset

import (
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/userdata"
)

// azureProviderSpec returns the provider spec of a MachineSet on Azure. R-187. In a region without zones,
// Machines have no zone, and are in the availability set of the workers. Azure refuses an instance with both.
func azureProviderSpec(o Options) (any, error) {
	worker := machinev1beta1.AzureMachineProviderSpec{}
	if err := decodeWorker(o.Worker, &worker); err != nil {
		return nil, err
	}
	if worker.Location == "" {
		return nil, missingFieldError("location")
	}
	image, err := azureImage(o)
	if err != nil {
		return nil, err
	}
	infrastructure, zone, availabilitySet := o.InfrastructureName, firstNonZero(o.Zone, worker.Zone), ""
	if zone == "" {
		availabilitySet = worker.AvailabilitySet
	}
	return machinev1beta1.AzureMachineProviderSpec{
		TypeMeta: metav1.TypeMeta{APIVersion: "azureproviderconfig.openshift.io/v1beta1",
			Kind: "AzureMachineProviderSpec"},
		CredentialsSecret: firstNonZero(worker.CredentialsSecret, &corev1.SecretReference{Name: "azure-cloud-credentials",
			Namespace: v1alpha1.MachineNamespace}),
		Image:                image,
		Location:             worker.Location,
		ManagedIdentity:      firstNonZero(worker.ManagedIdentity, infrastructure+"-identity"),
		NetworkResourceGroup: firstNonZero(worker.NetworkResourceGroup, infrastructure+"-rg"),
		OSDisk: machinev1beta1.OSDisk{
			DiskSizeGB: 128,
			ManagedDisk: machinev1beta1.OSDiskManagedDiskParameters{
				StorageAccountType: "Premium_LRS",
				DiskEncryptionSet:  worker.OSDisk.ManagedDisk.DiskEncryptionSet,
			},
			OSType: "Windows",
		},
		PublicIP: false,
		// In a cluster that reaches the Internet through its load balancer, an instance outside of the load
		// balancer has no access.
		PublicLoadBalancer: worker.PublicLoadBalancer,
		ResourceGroup:      firstNonZero(worker.ResourceGroup, infrastructure+"-rg"),
		SecurityGroup:      worker.SecurityGroup,
		Subnet:             firstNonZero(worker.Subnet, infrastructure+"-worker-subnet"),
		Tags:               worker.Tags,
		UserDataSecret:     &corev1.SecretReference{Name: userdata.SecretName, Namespace: v1alpha1.MachineNamespace},
		VMSize:             "Standard_D2s_v3",
		Vnet:               firstNonZero(worker.Vnet, infrastructure+"-vnet"),
		Zone:               zone,
		AvailabilitySet:    availabilitySet,
	}, nil
}
