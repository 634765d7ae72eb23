package machineset

import (
	"encoding/json"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// workers holds provider specs in the form of the installer, reduced to the fields that matter here.
var workers = map[configv1.PlatformType]string{
	configv1.AWSPlatformType: `
ami: {id: ami-0123456789abcdef0}
apiVersion: machine.openshift.io/v1beta1
blockDevices:
- ebs: {encrypted: true, iops: 4000, kmsKey: {arn: "arn:aws:kms:us-east-1:1:key/k"}, volumeSize: 120, volumeType: gp3}
capacityReservationId: ""
credentialsSecret: {name: aws-cloud-credentials}
deviceIndex: 0
iamInstanceProfile: {id: lab-x7k2p-worker-profile}
instanceType: m6i.xlarge
kind: AWSMachineProviderConfig
metadata: {creationTimestamp: null}
metadataServiceOptions: {authentication: Required}
placement: {availabilityZone: us-east-1a, region: us-east-1}
securityGroups:
- filters: [{name: "tag:Name", values: [lab-x7k2p-node]}]
- filters: [{name: "tag:Name", values: [lab-x7k2p-lb]}]
subnet:
  filters: [{name: "tag:Name", values: [lab-x7k2p-subnet-private-us-east-1a]}]
tags:
- {name: kubernetes.io/cluster/lab-x7k2p, value: owned}
- {name: cost-center, value: "7"}
userDataSecret: {name: worker-user-data}`,
	configv1.AzurePlatformType: `
acceleratedNetworking: true
apiVersion: machine.openshift.io/v1beta1
credentialsSecret: {name: azure-cloud-credentials, namespace: openshift-machine-api}
diagnostics: {}
image: {offer: aro4, publisher: azureopenshift, resourceID: "", sku: 418-v2, version: 418.94.20250122, type: MarketplaceNoPlan}
kind: AzureMachineProviderSpec
location: centralus
managedIdentity: lab-x7k2p-identity
metadata: {creationTimestamp: null}
networkResourceGroup: network-rg
osDisk:
  diskSettings: {}
  diskSizeGB: 128
  managedDisk: {diskEncryptionSet: {id: /subscriptions/s/diskEncryptionSets/d}, storageAccountType: Premium_LRS}
  osType: Linux
publicIP: false
publicLoadBalancer: lab-x7k2p
resourceGroup: lab-x7k2p-rg
subnet: lab-x7k2p-worker-subnet
tags: {cost-center: "7"}
userDataSecret: {name: worker-user-data}
vmSize: Standard_D4s_v3
vnet: own-vnet
zone: "2"`,
	configv1.GCPPlatformType: `
apiVersion: machine.openshift.io/v1beta1
canIPForward: false
credentialsSecret: {name: gcp-cloud-credentials}
deletionProtection: false
disks:
- {autoDelete: true, boot: true, image: projects/rhcos-cloud/global/images/rhcos, labels: null, sizeGb: 128, type: pd-ssd, encryptionKey: {kmsKey: {keyRing: r, location: global, name: k}}}
kind: GCPMachineProviderSpec
machineType: n2-standard-4
metadata: {creationTimestamp: null}
networkInterfaces: [{network: shared-network, projectID: network-project, subnetwork: shared-workers}]
projectID: lab-project
region: us-central1
serviceAccounts: [{email: own@lab-project.iam.gserviceaccount.com, scopes: ["https://www.googleapis.com/auth/cloud-platform"]}]
shieldedInstanceConfig: {}
tags: [lab-x7k2p-worker]
userDataSecret: {name: worker-user-data}
zone: us-central1-b`,
	configv1.VSpherePlatformType: `
apiVersion: machine.openshift.io/v1beta1
credentialsSecret: {name: vsphere-cloud-credentials}
diskGiB: 120
kind: VSphereMachineProviderSpec
memoryMiB: 8192
metadata: {creationTimestamp: null}
network: {devices: [{networkName: segment-1}]}
numCPUs: 2
numCoresPerSocket: 2
snapshot: ""
tagIDs: ["urn:vmomi:InventoryServiceTag:t:GLOBAL"]
template: lab-x7k2p-rhcos
userDataSecret: {name: worker-user-data}
workspace: {datacenter: dc1, datastore: /dc1/datastore/ds1, folder: /dc1/vm/lab-x7k2p, resourcePool: /dc1/host/c1/Resources, server: vcenter.example.com}`,
}

func newOptions(t *testing.T, platform configv1.PlatformType) Options {
	t.Helper()
	images := map[configv1.PlatformType]string{
		configv1.AWSPlatformType: "ami-0fedcba9876543210", configv1.VSpherePlatformType: "/dc1/vm/templates/windows-2022",
	}
	return Options{
		Platform: platform, InfrastructureName: "lab-x7k2p", Version: "2022", Image: images[platform], Replicas: 1,
		Worker: newWorker(t, workers[platform]),
	}
}

func newWorker(t *testing.T, text string) *runtime.RawExtension {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &runtime.RawExtension{Raw: data}
}

// generateSpec returns the provider spec of a MachineSet, and fails the test on an error.
func generateSpec[T any](t *testing.T, o Options) T {
	t.Helper()
	set, err := Generate(o)
	if err != nil {
		t.Fatal(err)
	}
	var spec T
	if err := json.Unmarshal(set.Spec.Template.Spec.ProviderSpec.Value.Raw, &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

//
func TestGenerate_AWSCopiesWorkerValues(t *testing.T) {
	spec := generateSpec[machinev1beta1.AWSMachineProviderConfig](t, newOptions(t, configv1.AWSPlatformType))
	disk := spec.BlockDevices[0].EBS
	for what, is := range map[string]bool{
		"image":              *spec.AMI.ID == "ami-0fedcba9876543210",
		"the guides' size":   spec.InstanceType == "m5a.large" && *disk.VolumeSize == 120 && *disk.VolumeType == "gp2",
		"encryption":         *disk.Encrypted && *disk.KMSKey.ARN == "arn:aws:kms:us-east-1:1:key/k",
		"subnet":             spec.Subnet.Filters[0].Values[0] == "lab-x7k2p-subnet-private-us-east-1a",
		"both groups":        len(spec.SecurityGroups) == 2,
		"metadata service":   spec.MetadataServiceOptions.Authentication == "Required",
		"placement":          spec.Placement.Region == "us-east-1" && spec.Placement.AvailabilityZone == "us-east-1a",
		"Windows' user data": spec.UserDataSecret.Name == "windows-user-data",
		"tags, R-075":        len(spec.Tags) == 2 && spec.Tags[0].Name == "kubernetes.io/cluster/lab-x7k2p",
		"the guides' group":  spec.APIVersion == "awsproviderconfig.openshift.io/v1beta1",
	} {
		if !is {
			t.Errorf("%s: %+v", what, spec)
		}
	}
	t.Run("an empty key, as the installer writes it, is left out", func(t *testing.T) {
		o := newOptions(t, configv1.AWSPlatformType)
		o.Worker = newWorker(t, strings.Replace(workers[o.Platform], "arn:aws:kms:us-east-1:1:key/k", "", 1))
		set, err := Generate(o)
		if err != nil || strings.Contains(string(set.Spec.Template.Spec.ProviderSpec.Value.Raw), "kmsKey") {
			t.Errorf("%v, %v", set, err)
		}
	})
	t.Run("the tag of the cluster is added where the worker has none", func(t *testing.T) {
		got := awsTags([]machinev1beta1.TagSpecification{{Name: "a", Value: "b"}}, "lab")
		if len(got) != 2 || got[1].Name != "kubernetes.io/cluster/lab" || got[1].Value != "owned" {
			t.Error(got)
		}
	})
}

//
func TestGenerate_AzureCopiesWorkerValues(t *testing.T) {
	spec := generateSpec[machinev1beta1.AzureMachineProviderSpec](t, newOptions(t, configv1.AzurePlatformType))
	for what, is := range map[string]bool{
		"network": spec.Vnet == "own-vnet" && spec.NetworkResourceGroup == "network-rg" &&
			spec.Subnet == "lab-x7k2p-worker-subnet",
		"way out":       spec.PublicLoadBalancer == "lab-x7k2p",
		"zone":          spec.Zone == "2" && spec.Location == "centralus",
		"tags":          spec.Tags["cost-center"] == "7",
		"encryption":    spec.OSDisk.ManagedDisk.DiskEncryptionSet.ID == "/subscriptions/s/diskEncryptionSets/d",
		"Windows":       spec.OSDisk.OSType == "Windows" && spec.Image.Type == "" && spec.Image.SKU == "2022-datacenter-core",
		"no Linux size": spec.VMSize == "Standard_D2s_v3" && !spec.AcceleratedNetworking,
		"the guides' image": spec.Image.Publisher == "MicrosoftWindowsServer" && spec.Image.Offer == "WindowsServer" &&
			spec.Image.Version == "latest" && spec.Image.ResourceID == "",
		"the guides' disk":    spec.OSDisk.DiskSizeGB == 128 && spec.OSDisk.ManagedDisk.StorageAccountType == "Premium_LRS",
		"no public address":   !spec.PublicIP,
		"no availability set": spec.AvailabilitySet == "",
		"the guides' kind":    spec.APIVersion == "azureproviderconfig.openshift.io/v1beta1" && spec.Kind == "AzureMachineProviderSpec",
		"Windows' user data":  spec.UserDataSecret.Name == "windows-user-data",
	} {
		if !is {
			t.Errorf("%s: %+v", what, spec)
		}
	}
}

// In an Azure region without availability zones, the Machines have no zone, and are in the availability set of
// the workers.
func TestGenerate_AzureRegionWithoutZones(t *testing.T) {
	const zone = `zone: "2"`
	for name, c := range map[string]struct{ worker, set string }{
		"with an availability set": {"availabilitySet: lab-x7k2p-workers", "lab-x7k2p-workers"},
		"without one":              {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOptions(t, configv1.AzurePlatformType)
			o.Worker = newWorker(t, strings.Replace(workers[o.Platform], zone, c.worker, 1))
			spec := generateSpec[machinev1beta1.AzureMachineProviderSpec](t, o)
			if spec.Zone != "" || spec.AvailabilitySet != c.set || spec.Location != "centralus" {
				t.Errorf("zone %q, availability set %q, location %q", spec.Zone, spec.AvailabilitySet, spec.Location)
			}
		})
	}
	t.Run("an instance in a zone is in no availability set", func(t *testing.T) {
		o := newOptions(t, configv1.AzurePlatformType)
		o.Zone = "1"
		o.Worker = newWorker(t, strings.Replace(workers[o.Platform], zone, "availabilitySet: lab-x7k2p-workers", 1))
		if spec := generateSpec[machinev1beta1.AzureMachineProviderSpec](t, o); spec.Zone != "1" || spec.AvailabilitySet != "" {
			t.Errorf("zone %q, availability set %q", spec.Zone, spec.AvailabilitySet)
		}
	})
}

//
func TestGenerate_GCPCopiesWorkerValues(t *testing.T) {
	spec := generateSpec[machinev1beta1.GCPMachineProviderSpec](t, newOptions(t, configv1.GCPPlatformType))
	for what, is := range map[string]bool{
		"network": *spec.NetworkInterfaces[0] == machinev1beta1.GCPNetworkInterface{Network: "shared-network",
			ProjectID: "network-project", Subnetwork: "shared-workers"},
		"identity":   spec.ServiceAccounts[0].Email == "own@lab-project.iam.gserviceaccount.com",
		"place":      spec.ProjectID == "lab-project" && spec.Region == "us-central1" && spec.Zone == "us-central1-b",
		"encryption": spec.Disks[0].EncryptionKey.KMSKey.Name == "k",
		"image":      spec.Disks[0].Image == "projects/windows-cloud/global/images/family/windows-2022-core",
		"the guides' disk": len(spec.Disks) == 1 && spec.Disks[0].Boot && spec.Disks[0].AutoDelete &&
			spec.Disks[0].SizeGB == 128 && spec.Disks[0].Type == "pd-ssd",
		"the guides' size":   spec.MachineType == "n1-standard-4",
		"the guides' kind":   spec.APIVersion == "machine.openshift.io/v1beta1" && spec.Kind == "GCPMachineProviderSpec",
		"Windows' user data": spec.UserDataSecret.Name == "windows-user-data",
	} {
		if !is {
			t.Errorf("%s: %+v", what, spec)
		}
	}
}

//
func TestGenerate_VSphereCopiesWorkerValues(t *testing.T) {
	spec := generateSpec[machinev1beta1.VSphereMachineProviderSpec](t, newOptions(t, configv1.VSpherePlatformType))
	for what, is := range map[string]bool{
		"size":     spec.NumCPUs == 4 && spec.NumCoresPerSocket == 1 && spec.MemoryMiB == 16384 && spec.DiskGiB == 128,
		"template": spec.Template == "/dc1/vm/templates/windows-2022",
		"network":  spec.Network.Devices[0].NetworkName == "segment-1",
		"workspace": spec.Workspace.ResourcePool == "/dc1/host/c1/Resources" &&
			spec.Workspace.Server == "vcenter.example.com",
		"tags": len(spec.TagIDs) == 1,
	} {
		if !is {
			t.Errorf("%s: %+v", what, spec)
		}
	}
	t.Run("without a resource pool it has none", func(t *testing.T) {
		o := newOptions(t, configv1.VSpherePlatformType)
		o.Worker = newWorker(t, strings.Replace(workers[o.Platform], "resourcePool: /dc1/host/c1/Resources, ", "", 1))
		set, err := Generate(o)
		if err != nil || strings.Contains(string(set.Spec.Template.Spec.ProviderSpec.Value.Raw), "resourcePool") {
			t.Errorf("%v, %v", set, err)
		}
	})
}

//
func TestName(t *testing.T) {
	for sentence, test := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"AWS: with the zone": {func(o *Options) {
			o.Platform = "AWS"
			o.Zone = "us-east-1c"
		}, "lab-x7k2p-windows-worker-us-east-1c"},
		"GCP: with the suffix of the zone": {func(o *Options) {
			o.Platform = "GCP"
			o.Zone = "europe-west1-d"
		}, "lab-x7k2p-windows-worker-d"},
		"Azure: nine characters":   {func(o *Options) { o.Platform = "Azure" }, "winworker"},
		"vSphere: nine characters": {func(o *Options) { o.Platform = "VSphere" }, "winworker"},
		"a name of its own":        {func(o *Options) { o.Platform = "Azure"; o.Name = "win-b" }, "win-b"},
		"a long name on AWS": {func(o *Options) {
			o.Platform = "AWS"
			o.Name = "windows-for-builds"
		}, "windows-for-builds"},
		"ten characters on Azure are too many":   {func(o *Options) { o.Platform = "Azure"; o.Name = "winworker2" }, ""},
		"ten characters on vSphere are too many": {func(o *Options) { o.Platform = "VSphere"; o.Name = "winworker2" }, ""},
		"an invalid name":                        {func(o *Options) { o.Platform = "AWS"; o.Name = "Win_worker" }, ""},
		"more than a node's name may have": {func(o *Options) {
			o.Platform = "AWS"
			o.Name = strings.Repeat("w", 58)
		}, ""},
		"AWS without worker and zone":    {func(o *Options) { o.Platform = "AWS" }, ""},
		"a platform without MachineSets": {func(o *Options) { o.Platform = "None" }, ""},
		"GCP with a worker that tells no zone": {func(o *Options) {
			o.Platform = "GCP"
			o.Worker = &runtime.RawExtension{Raw: []byte("{}")}
		}, ""},
		"AWS with a worker that cannot be read": {func(o *Options) {
			o.Platform = "AWS"
			o.Worker = &runtime.RawExtension{Raw: []byte("7")}
		}, ""},
		"GCP takes the zone that the worker is in": {func(o *Options) {
			o.Platform = "GCP"
			o.Worker = &runtime.RawExtension{Raw: []byte(`{"zone":"us-central1-f"}`)}
		}, "lab-x7k2p-windows-worker-f"},
		"Azure's names say nothing about the zones": {func(o *Options) { o.Platform = "Azure"; o.Zone = "3" }, "winworker"},
	} {
		t.Run(sentence, func(t *testing.T) {
			o := Options{InfrastructureName: "lab-x7k2p", Version: "2022"}
			test.change(&o)
			got, err := Name(o)
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestGenerate_InvalidOptionsRejected(t *testing.T) {
	for sentence, test := range map[string]struct {
		platform configv1.PlatformType
		change   func(*Options)
		message  string
	}{
		"platform None": {"None", func(*Options) {}, "windows-instances"},
		"Nutanix": {"Nutanix", func(*Options) {},
			`cannot generate a MachineSet for platform "Nutanix", only for AWS, Azure, GCP and VSphere. Write the MachineSet manually`},
		"Windows Server 2019 on vSphere, R-180": {"VSphere", func(o *Options) {
			o.Version = "2019"
		}, "Windows Server 2019 is not supported on platform VSphere"},
		"Windows Server 2019 on GCP": {"GCP", func(o *Options) {
			o.Version = "2019"
		}, "Windows Server 2019 is not supported on platform GCP"},
		"another version": {"AWS", func(o *Options) { o.Version = "2016" }, `unknown version "2016"`},
		"AWS without an image, R-191": {"AWS", func(o *Options) {
			o.Image = ""
		}, `aws ec2 describe-images --region us-east-1 --filters "Name=name,Values=Windows_Server-2022*English*Core*Base*"`},
		"AWS with something else for an image": {"AWS", func(o *Options) { o.Image = "windows" }, "is not an AMI"},
		"AWS in a zone without worker": {"AWS", func(o *Options) {
			o.Zone = "us-east-1f"
		}, "zone us-east-1a, and its subnet"},
		"AWS with a worker without a region": {"AWS", func(o *Options) { o.Worker.Raw = []byte("{}") }, "zone"},
		"Azure with half an image": {"Azure", func(o *Options) {
			o.Image = "WindowsServer:2022"
		}, "publisher:offer:sku:version"},
		"Azure with a worker without location": {"Azure", func(o *Options) { o.Worker.Raw = []byte("{}") }, "no location"},
		"GCP with half an image": {"GCP", func(o *Options) {
			o.Image = "windows-2022-core"
		}, "use the full path"},
		"GCP in another region": {"GCP", func(o *Options) {
			o.Zone = "europe-west1-b"
		}, "not in the cluster's region us-central1"},
		"GCP with a worker without a project": {"GCP", func(o *Options) {
			o.Worker.Raw = []byte(`{"zone":"a-b"}`)
		}, "no projectID"},
		"GCP with a worker without a region": {"GCP", func(o *Options) {
			o.Worker.Raw = []byte(`{"zone":"a-b","projectID":"p"}`)
		}, "no region"},
		"vSphere without a template": {"VSphere", func(o *Options) { o.Image = "" }, "--template"},
		"vSphere with a zone":        {"VSphere", func(o *Options) { o.Zone = "a" }, "vSphere has no zones"},
		"vSphere with a worker without a place": {"VSphere", func(o *Options) {
			o.Worker.Raw = []byte("{}")
		}, "no workspace"},
		"vSphere with a worker without network": {"VSphere", func(o *Options) {
			o.Worker.Raw = []byte(`{"workspace":{"server":"s","datacenter":"d"}}`)
		}, "no network.devices"},
		"a cluster without workers": {"Azure", func(o *Options) { o.Worker = nil }, "no worker MachineSet"},
		"less than no Machines":     {"Azure", func(o *Options) { o.Replicas = -1 }, "replicas is -1"},
		"a name that is too long":   {"Azure", func(o *Options) { o.Name = "winworker2" }, "at most 9 are allowed"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if workers[test.platform] == "" {
				if _, err := Generate(Options{Platform: test.platform, Version: "2022"}); err == nil || !strings.Contains(err.Error(), test.message) {
					t.Errorf("it says: %v", err)
				}
				return
			}
			o := newOptions(t, test.platform)
			test.change(&o)
			if _, err := Generate(o); err == nil || !strings.Contains(err.Error(), test.message) {
				t.Errorf("it says: %v", err)
			}
		})
	}
}

func TestImages(t *testing.T) {
	azure := func(version, image string) machinev1beta1.Image {
		o := newOptions(t, configv1.AzurePlatformType)
		o.Version, o.Image = version, image
		return generateSpec[machinev1beta1.AzureMachineProviderSpec](t, o).Image
	}
	if got := azure("2019", ""); got.SKU != "2019-Datacenter-with-Containers" || got.Version != "latest" {
		t.Error(got)
	}
	if got := azure("2025", ""); got.SKU != "2025-datacenter-core" {
		t.Error(got)
	}
	if got := azure("2022",
		"/subscriptions/s/images/own"); got != (machinev1beta1.Image{ResourceID: "/subscriptions/s/images/own"}) {
		t.Error(got)
	}
	if got := azure("2022", "p:o:s:1.2"); got != (machinev1beta1.Image{Publisher: "p", Offer: "o",
		SKU: "s", Version: "1.2"}) {
		t.Error(got)
	}
	o := newOptions(t, configv1.GCPPlatformType)
	o.Image = "projects/own/global/images/windows"
	if got := generateSpec[machinev1beta1.GCPMachineProviderSpec](t, o).Disks[0].Image; got != o.Image {
		t.Error(got)
	}
}

func TestRender_MatchesGeneratedMachineSet(t *testing.T) {
	for platform := range workers {
		t.Run(string(platform), func(t *testing.T) {
			set, err := Generate(newOptions(t, platform))
			if err != nil {
				t.Fatal(err)
			}
			data, err := Render(set)
			if err != nil {
				t.Fatal(err)
			}
			for _, unwanted := range []string{"null", "{}", "status", "creationTimestamp", "capacityReservationId",
				"worker-user-data"} {
				if strings.Contains(string(data), unwanted) {
					t.Errorf("it has %s:\n%s", unwanted, data)
				}
			}
			again := &machinev1beta1.MachineSet{}
			if err := yaml.UnmarshalStrict(data, again); err != nil {
				t.Error(err)
			}
			if again.Name != set.Name || ptr.Deref(again.Spec.Replicas, 0) != 1 ||
				again.Spec.Template.Labels["machine.openshift.io/os-id"] != "Windows" {
				t.Errorf("%+v", again)
			}
		})
	}
}
