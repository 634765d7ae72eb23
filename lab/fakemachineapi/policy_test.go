package fakemachineapi

import (
	"slices"
	"strings"
	"testing"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

//
func TestDeletionOrder(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	machine := func(name string, age int, edit ...func(*machinev1.Machine)) *machinev1.Machine {
		m := &machinev1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name,
			CreationTimestamp: metav1.NewTime(start.Add(-time.Duration(age) * time.Hour))}}
		m.Status.NodeRef = &corev1.ObjectReference{Name: name}
		for _, e := range edit {
			e(m)
		}
		return m
	}
	annotated := func(key, value string) func(*machinev1.Machine) {
		return func(m *machinev1.Machine) { m.Annotations = map[string]string{key: value} }
	}
	erroneous := func(m *machinev1.Machine) { m.Status.ErrorMessage = ptr.To("broken") }
	withoutNode := func(m *machinev1.Machine) { m.Status.NodeRef = nil }
	all := []*machinev1.Machine{
		machine("a-middle", 2), machine("b-young", 1), machine("c-old", 3), machine("d-new", 0, withoutNode),
		machine("e-broken", 2, erroneous),
		machine("f-annotated", 2, annotated(annotationDelete, "true")),
		machine("g-annotated-old", 1, annotated(annotationDeleteOld, "yes")),
		machine("h-empty", 2, annotated(annotationDelete, "")),
	}
	for policy, want := range map[machinev1.MachineSetDeletePolicy]string{
		"":                                     "f-annotated g-annotated-old e-broken d-new a-middle b-young c-old h-empty",
		machinev1.RandomMachineSetDeletePolicy: "f-annotated g-annotated-old e-broken d-new a-middle b-young c-old h-empty",
		machinev1.NewestMachineSetDeletePolicy: "g-annotated-old f-annotated e-broken d-new b-young a-middle h-empty c-old",
		machinev1.OldestMachineSetDeletePolicy: "f-annotated g-annotated-old e-broken c-old a-middle h-empty b-young d-new",
	} {
		t.Run("policy "+string(policy), func(t *testing.T) {
			var got []string
			for _, m := range deletionOrder(slices.Clone(all), policy) {
				got = append(got, m.Name)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("got  %v\nwant %s", got, want)
			}
		})
	}
}

func TestReadProviderSpec(t *testing.T) {
	for name, c := range map[string]struct {
		platform, value string
		want            providerSpec
		err             string
	}{
		"AWS": {"AWS", `{"ami":{"id":"ami-1"},"instanceType":"m5a.large","placement":{"region":"us-east-1","availabilityZone":"us-east-1c"},"userDataSecret":{"name":"s"}}`,
			providerSpec{Image: "ami-1", InstanceType: "m5a.large", Region: "us-east-1", Zone: "us-east-1c",
				UserDataSecret: "s"}, ""},
		"AWS without a zone": {"AWS", `{"ami":{"id":"ami-1"},"placement":{"region":"us-east-1"}}`,
			providerSpec{Image: "ami-1", Region: "us-east-1", Zone: "us-east-1a"}, ""},
		"Azure": {"Azure", `{"image":{"offer":"WindowsServer","sku":"2022-datacenter"},"vmSize":"Standard_D2s_v3","location":"centralus","zone":"2","resourceGroup":"rg"}`,
			providerSpec{Image: "WindowsServer:2022-datacenter", InstanceType: "Standard_D2s_v3", Region: "centralus",
				Zone: "2", Group: "rg"}, ""},
		"GCP": {"GCP", `{"disks":[{"image":"windows-2022"}],"machineType":"n1-standard-4","region":"us-central1","zone":"us-central1-a","projectID":"p"}`,
			providerSpec{Image: "windows-2022", InstanceType: "n1-standard-4", Region: "us-central1",
				Zone: "us-central1-a", Group: "p"}, ""},
		"vSphere": {"VSphere", `{"template":"windows-golden"}`, providerSpec{Image: "windows-golden"},
			""},
		"Nutanix":                      {"Nutanix", `{"image":{"type":"name","name":"win"}}`, providerSpec{Image: "win"}, ""},
		"no cloud takes any form":      {"None", `{"disks":[{"image":"x"}]}`, providerSpec{Image: "x"}, ""},
		"a form of another platform":   {"GCP", `{"template":"x"}`, providerSpec{}, "disks[0].image"},
		"no disks":                     {"GCP", `{"disks":[]}`, providerSpec{}, "disks[0].image"},
		"nothing":                      {"AWS", ``, providerSpec{}, "is missing"},
		"a list":                       {"AWS", `[]`, providerSpec{}, "not an object"},
		"an image that is no text":     {"AWS", `{"ami":{"id":7}}`, providerSpec{}, "ami.id"},
		"no cloud, and nothing usable": {"None", `{}`, providerSpec{}, "ami.id, image, template"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readProviderSpec(c.platform, &runtime.RawExtension{Raw: []byte(c.value)})
			if got != c.want || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestIdentity(t *testing.T) {
	spec := providerSpec{Zone: "z", Group: "g"}
	for platform, want := range map[string]string{
		"AWS":   "aws:///z/ID",
		"Azure": "azure:///subscriptions/ID/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/m",
		"GCP":   "gce://g/z/m", "VSphere": "vsphere://ID", "Nutanix": "nutanix://ID", "None": "",
	} {
		if got := providerID(platform, "m", "ID", spec); got != want {
			t.Errorf("%s: %s", platform, got)
		}
	}
	if a, b := instanceID("AWS", "1"), instanceID("AWS", "2"); a == b || len(a) != len("i-0123456789abcdef0") ||
		a != instanceID("AWS", "1") {
		t.Errorf("instances %s and %s", a, b)
	}
	if id := instanceID("VSphere", "1"); len(id) != 36 {
		t.Errorf("instance %s", id)
	}
}
