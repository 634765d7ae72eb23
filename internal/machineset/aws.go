package machineset

import (
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/internal/userdata"
)

// awsProviderSpec returns the provider spec of a MachineSet on AWS. R-186
func awsProviderSpec(o Options) (any, error) {
	worker := machinev1beta1.AWSMachineProviderConfig{}
	if err := decodeWorker(o.Worker, &worker); err != nil {
		return nil, err
	}
	if worker.Placement.Region == "" {
		return nil, missingFieldError("placement.region")
	}
	zone, err := zoneOf(o)
	if err != nil {
		return nil, err
	}
	if workerZone := worker.Placement.AvailabilityZone; workerZone != "" && workerZone != zone {
		return nil, fmt.Errorf("the worker MachineSet is in zone %s, and its subnet cannot be used in zone %s: use a worker MachineSet of that zone", workerZone, zone)
	}
	image, err := amazonImage(o, worker.Placement.Region)
	if err != nil {
		return nil, err
	}
	spec := machinev1beta1.AWSMachineProviderConfig{
		TypeMeta: metav1.TypeMeta{APIVersion: "awsproviderconfig.openshift.io/v1beta1",
			Kind: "AWSMachineProviderConfig"},
		AMI:               machinev1beta1.AWSResourceReference{ID: &image},
		BlockDevices:      []machinev1beta1.BlockDeviceMappingSpec{{EBS: awsDisk(worker.BlockDevices)}},
		CredentialsSecret: firstNonZero(worker.CredentialsSecret, &corev1.LocalObjectReference{Name: "aws-cloud-credentials"}),
		DeviceIndex:       0,
		IAMInstanceProfile: firstNonZero(worker.IAMInstanceProfile,
			&machinev1beta1.AWSResourceReference{ID: ptr.To(o.InfrastructureName + "-worker-profile")}),
		InstanceType:           "m5a.large",
		Placement:              worker.Placement,
		PublicIP:               worker.PublicIP,
		SecurityGroups:         worker.SecurityGroups,
		Subnet:                 worker.Subnet,
		Tags:                   awsTags(worker.Tags, o.InfrastructureName),
		UserDataSecret:         &corev1.LocalObjectReference{Name: userdata.SecretName},
		MetadataServiceOptions: worker.MetadataServiceOptions,
	}
	spec.Placement.AvailabilityZone = zone
	if len(spec.SecurityGroups) == 0 {
		spec.SecurityGroups = []machinev1beta1.AWSResourceReference{awsNamed(o.InfrastructureName + "-worker-sg")}
	}
	if spec.Subnet.ID == nil && spec.Subnet.ARN == nil && len(spec.Subnet.Filters) == 0 {
		spec.Subnet = awsNamed(o.InfrastructureName + "-private-" + zone)
	}
	return spec, nil
}

// awsNamed returns a reference to the resource with a name.
func awsNamed(name string) machinev1beta1.AWSResourceReference {
	return machinev1beta1.AWSResourceReference{Filters: []machinev1beta1.Filter{{Name: "tag:Name",
		Values: []string{name}}}}
}

// awsDisk returns the disk, with the encryption of the worker's disk.
func awsDisk(devices []machinev1beta1.BlockDeviceMappingSpec) *machinev1beta1.EBSBlockDeviceSpec {
	disk := &machinev1beta1.EBSBlockDeviceSpec{Iops: ptr.To[int64](0), VolumeSize: ptr.To[int64](120),
		VolumeType: ptr.To("gp2")}
	for _, device := range devices {
		if device.EBS != nil {
			disk.Encrypted = device.EBS.Encrypted
			// The installer writes an empty ARN for Amazon's own key.
			if key := device.EBS.KMSKey; ptr.Deref(key.ARN, "") != "" || ptr.Deref(key.ID, "") != "" {
				disk.KMSKey = key
			}
			break
		}
	}
	return disk
}

// awsTags returns the tags of the worker, and the tag for the owner of the instance. R-075
func awsTags(tags []machinev1beta1.TagSpecification, infrastructureName string) []machinev1beta1.TagSpecification {
	owner := machinev1beta1.TagSpecification{Name: "kubernetes.io/cluster/" + infrastructureName, Value: "owned"}
	if slices.ContainsFunc(tags, func(tag machinev1beta1.TagSpecification) bool { return tag.Name == owner.Name }) {
		return tags
	}
	return append(slices.Clone(tags), owner)
}
