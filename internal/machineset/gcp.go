package machineset

import (
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/internal/userdata"
)

// gcpProviderSpec returns the provider spec of a MachineSet on GCP. R-189
func gcpProviderSpec(o Options) (any, error) {
	worker := machinev1beta1.GCPMachineProviderSpec{}
	if err := decodeWorker(o.Worker, &worker); err != nil {
		return nil, err
	}
	switch {
	case worker.ProjectID == "":
		return nil, missingFieldError("projectID")
	case worker.Region == "":
		return nil, missingFieldError("region")
	}
	zone, err := zoneOf(o)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(zone, worker.Region+"-") {
		return nil, fmt.Errorf("zone %s is not in the cluster's region %s", zone, worker.Region)
	}
	image, err := googleImage(o)
	if err != nil {
		return nil, err
	}
	infrastructure := o.InfrastructureName
	spec := machinev1beta1.GCPMachineProviderSpec{
		TypeMeta: metav1.TypeMeta{APIVersion: machinev1beta1.GroupVersion.String(),
			Kind: "GCPMachineProviderSpec"},
		CanIPForward:        false,
		CredentialsSecret:   firstNonZero(worker.CredentialsSecret, &corev1.LocalObjectReference{Name: "gcp-cloud-credentials"}),
		DeletionProtection:  false,
		Disks:               []*machinev1beta1.GCPDisk{gcpDisk(worker.Disks, image)},
		Labels:              worker.Labels,
		MachineType:         "n1-standard-4",
		NetworkInterfaces:   worker.NetworkInterfaces,
		ProjectID:           worker.ProjectID,
		Region:              worker.Region,
		ResourceManagerTags: worker.ResourceManagerTags,
		ServiceAccounts:     worker.ServiceAccounts,
		Tags:                worker.Tags,
		UserDataSecret:      &corev1.LocalObjectReference{Name: userdata.SecretName},
		Zone:                zone,
	}
	if len(spec.NetworkInterfaces) == 0 {
		spec.NetworkInterfaces = []*machinev1beta1.GCPNetworkInterface{{Network: infrastructure + "-network",
			Subnetwork: infrastructure + "-worker-subnet"}}
	}
	if len(spec.ServiceAccounts) == 0 {
		spec.ServiceAccounts = []machinev1beta1.GCPServiceAccount{{
			Email:  infrastructure + "-w@" + worker.ProjectID + ".iam.gserviceaccount.com",
			Scopes: []string{"https://www.googleapis.com/auth/cloud-platform"},
		}}
	}
	if len(spec.Tags) == 0 {
		spec.Tags = []string{infrastructure + "-worker"}
	}
	return spec, nil
}

// gcpDisk returns the boot disk, with the encryption of the worker's boot disk.
func gcpDisk(disks []*machinev1beta1.GCPDisk, image string) *machinev1beta1.GCPDisk {
	disk := &machinev1beta1.GCPDisk{AutoDelete: true, Boot: true, Image: image, SizeGB: 128, Type: "pd-ssd"}
	for _, other := range disks {
		if other != nil && other.Boot {
			disk.EncryptionKey = other.EncryptionKey
			break
		}
	}
	return disk
}
