package examples_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/internal/machineset"
)

// checkGenerated checks that the generator creates exactly this MachineSet, that the type of the provider spec has all
// fields, and that the API server accepts the MachineSet.
func checkGenerated(t *testing.T, want *unstructured.Unstructured, o machineset.Options, worker string, spec any) {
	t.Helper()
	o.InfrastructureName, o.Replicas, o.Worker = "lab-x7k2p", 1, &runtime.RawExtension{Raw: []byte(worker)}
	set, err := machineset.Generate(o)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := machineset.Render(set)
	if err != nil {
		t.Fatal(err)
	}
	got := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(rendered, &got.Object); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("the example has (-), and the generator makes (+):\n%s", diff)
	}
	decoder := json.NewDecoder(bytes.NewReader(set.Spec.Template.Spec.ProviderSpec.Value.Raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(spec); err != nil {
		t.Errorf("the Machine API does not know all fields: %v", err)
	}
	if err := newStrictClient(t).Create(t.Context(), got, client.DryRunAll); err != nil {
		t.Errorf("the API server does not take it: %v", err)
	}
}

//
func TestVSphereExample_ValidWithoutResourcePool(t *testing.T) {
	example := read(t, "machineset-vsphere.yaml")
	workspace := []string{"spec", "template", "spec", "providerSpec", "value", "workspace"}
	if _, found, err := unstructured.NestedString(example.Object, append(workspace, "resourcePool")...); !found ||
		err != nil {
		t.Fatalf("the example has none: %v", err)
	}
	unstructured.RemoveNestedField(example.Object, append(workspace, "resourcePool")...)
	var spec machinev1beta1.VSphereMachineProviderSpec
	checkGenerated(t, example, machineset.Options{Platform: configv1.VSpherePlatformType, Version: "2022",
		Image: "/dc1/vm/templates/windows-2022"},
		`{"network":{"devices":[{"networkName":"segment-1"}]},"workspace":{"datacenter":"dc1","datastore":"ds1","folder":"/dc1/vm/lab-x7k2p","server":"192.0.2.1"}}`,
		&spec)
	if spec.Workspace == nil || spec.Workspace.ResourcePool != "" || spec.Workspace.Server != "192.0.2.1" {
		t.Errorf("the workspace is %+v", spec.Workspace)
	}
}

//
func TestAzureExample_ValidForWindowsServer2022(t *testing.T) {
	example := read(t, "machineset-azure.yaml")
	sku := []string{"spec", "template", "spec", "providerSpec", "value", "image", "sku"}
	if value, _, err := unstructured.NestedString(example.Object, sku...); value != "2019-Datacenter-with-Containers" ||
		err != nil {
		t.Fatalf("the example is for %q, %v", value, err)
	}
	if err := unstructured.SetNestedField(example.Object, "2022-datacenter-core", sku...); err != nil {
		t.Fatal(err)
	}
	annotations := example.GetAnnotations()
	const capacity = "capacity.cluster-autoscaler.kubernetes.io/labels"
	annotations[capacity] = strings.Replace(annotations[capacity], "10.0.17763", "10.0.20348", 1)
	example.SetAnnotations(annotations)
	checkGenerated(t, example, machineset.Options{Platform: configv1.AzurePlatformType, Version: "2022"},
		`{"location":"centralus","zone":"1"}`,
		&machinev1beta1.AzureMachineProviderSpec{})
}
