package machineset

import (
	"encoding/json"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
)

// decodeWorker decodes the provider spec of a worker. Fields unknown to this version are dropped: they are for
// Linux workers of a newer cluster.
func decodeWorker(worker *runtime.RawExtension, into any) error {
	if worker == nil || len(worker.Raw) == 0 {
		return fmt.Errorf("no worker MachineSet exists to copy the values from: write the MachineSet manually; examples/ has one for each platform")
	}
	if err := json.Unmarshal(worker.Raw, into); err != nil {
		return fmt.Errorf("read spec.template.spec.providerSpec.value of the worker MachineSet: %w", err)
	}
	return nil
}

// WorkerZone returns the availability zone of a worker, or "" without a zone.
func WorkerZone(platform configv1.PlatformType, worker *runtime.RawExtension) (string, error) {
	switch platform {
	case configv1.AWSPlatformType:
		spec := machinev1beta1.AWSMachineProviderConfig{}
		err := decodeWorker(worker, &spec)
		return spec.Placement.AvailabilityZone, err
	case configv1.AzurePlatformType:
		spec := machinev1beta1.AzureMachineProviderSpec{}
		err := decodeWorker(worker, &spec)
		return spec.Zone, err
	case configv1.GCPPlatformType:
		spec := machinev1beta1.GCPMachineProviderSpec{}
		err := decodeWorker(worker, &spec)
		return spec.Zone, err
	default:
		return "", nil
	}
}

// WorkerRegion returns the region of a worker on AWS.
func WorkerRegion(worker *runtime.RawExtension) (string, error) {
	spec := machinev1beta1.AWSMachineProviderConfig{}
	if err := decodeWorker(worker, &spec); err != nil {
		return "", err
	}
	if spec.Placement.Region == "" {
		return "", missingFieldError("placement.region")
	}
	return spec.Placement.Region, nil
}

// missingFieldError returns the error for a required value that the worker MachineSet lacks.
func missingFieldError(field string) error {
	return fmt.Errorf("the worker MachineSet has no %s: write the MachineSet manually; examples/ has one for each platform",
		field)
}

// firstNonZero returns the first value unless it is the zero value, and otherwise the second value.
func firstNonZero[T comparable](value, otherwise T) T {
	var zero T
	if value != zero {
		return value
	}
	return otherwise
}
