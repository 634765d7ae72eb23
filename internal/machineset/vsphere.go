package machineset

import (
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/internal/userdata"
)

// vsphereProviderSpec returns the provider spec of a MachineSet on vSphere. R-188
func vsphereProviderSpec(o Options) (any, error) {
	if o.Zone != "" {
		return nil, fmt.Errorf("vSphere has no zones, but --zone is %q: select a worker MachineSet of the failure domain with --from", o.Zone)
	}
	worker := machinev1beta1.VSphereMachineProviderSpec{}
	if err := decodeWorker(o.Worker, &worker); err != nil {
		return nil, err
	}
	switch {
	case worker.Workspace == nil || worker.Workspace.Server == "" || worker.Workspace.Datacenter == "":
		return nil, missingFieldError("workspace with server and datacenter")
	case len(worker.Network.Devices) == 0:
		return nil, missingFieldError("network.devices")
	}
	template, err := vsphereTemplate(o)
	if err != nil {
		return nil, err
	}
	return machinev1beta1.VSphereMachineProviderSpec{
		TypeMeta: metav1.TypeMeta{APIVersion: "vsphereprovider.openshift.io/v1beta1",
			Kind: "VSphereMachineProviderSpec"},
		CredentialsSecret: firstNonZero(worker.CredentialsSecret, &corev1.LocalObjectReference{Name: "vsphere-cloud-credentials"}),
		DiskGiB:           128,
		MemoryMiB:         16384,
		Network:           worker.Network,
		NumCPUs:           4,
		NumCoresPerSocket: 1,
		Snapshot:          "",
		TagIDs:            worker.TagIDs,
		Template:          template,
		UserDataSecret:    &corev1.LocalObjectReference{Name: userdata.SecretName},
		Workspace:         worker.Workspace,
	}, nil
}
