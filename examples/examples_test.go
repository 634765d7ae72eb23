package examples_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/examples"
	"github.com/windows-machine-config/wmco/internal/machineset"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

// placeholders contains the placeholders of the examples, with typical values of users.
var placeholders = []string{
	"<infrastructure_id>", "lab-x7k2p",
	"<windows_container_ami>", "ami-0123456789abcdef0",
	"<windows_machine_set_name>", "winworker",
	"<windows_vm_template_name>", "/dc1/vm/templates/windows-2022",
	"<windows_server_image>", "projects/windows-cloud/global/images/family/windows-2022-core",
	"<region>", "us-central1",
	"<location>", "centralus",
	"<zone_suffix>", "a",
	`"<zone>"`, `"1"`,
	"<zone>", "us-central1-a",
	"<project_id>", "lab-project",
	"<vm_network_name>", "segment-1",
	"<vcenter_datacenter_name>", "dc1",
	"<vcenter_datastore_name>", "ds1",
	"<vcenter_vm_folder_path>", "/dc1/vm/lab-x7k2p",
	"<vsphere_resource_pool>", "/dc1/host/c1/Resources",
	"<vcenter_server_ip>", "192.0.2.1",
}

//
func TestExamples_AcceptedByAPIServer(t *testing.T) {
	c := newStrictClient(t)
	if err := c.Create(t.Context(), read(t, "wmco-namespace.yaml")); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	installCRDs(t, c)
	names, err := fs.Glob(examples.Files, "*.yaml")
	if err != nil || len(names) < 15 {
		t.Fatalf("%v, %v", names, err)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			object := read(t, name)
			if isNamespaced(t, c, object) && object.GetNamespace() == "" {
				object.SetNamespace("default")
			}
			err := c.Create(t.Context(), object, client.DryRunAll)
			if name == "wmco-namespace.yaml" && apierrors.IsAlreadyExists(err) {
				err = nil
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("a field that is misspelled is refused", func(t *testing.T) {
		object := read(t, "win-webserver-tolerations.yaml")
		object.SetNamespace("default")
		path := []string{"spec", "template", "spec", "tolerations"}
		tolerations, _, err := unstructured.NestedSlice(object.Object, path...)
		if err != nil {
			t.Fatal(err)
		}
		tolerations[0].(map[string]any)["Effect"] = "NoSchedule"
		if err := unstructured.SetNestedSlice(object.Object, tolerations, path...); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(t.Context(), object, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "Effect") {
			t.Errorf("the API server says: %v", err)
		}
	})
}

// The examples equal the guides' examples, and the generator creates the same objects from a worker that contains
// only the values left open.
func TestExamples_MatchGenerator(t *testing.T) {
	for _, test := range []struct {
		name, worker string
		options      machineset.Options
		strict       any
	}{
		{"machineset-aws.yaml", `{"placement":{"availabilityZone":"us-central1-a","region":"us-central1"}}`,
			machineset.Options{Platform: configv1.AWSPlatformType, Version: "2022", Image: "ami-0123456789abcdef0"},
			&awsProviderSpec{}},
		{"machineset-azure.yaml", `{"location":"centralus","zone":"1"}`,
			machineset.Options{Platform: configv1.AzurePlatformType, Version: "2019"},
			&machinev1beta1.AzureMachineProviderSpec{}},
		{"machineset-gcp.yaml", `{"projectID":"lab-project","region":"us-central1","zone":"us-central1-a"}`,
			machineset.Options{Platform: configv1.GCPPlatformType, Version: "2022"}, &machinev1beta1.GCPMachineProviderSpec{}},
		{"machineset-vsphere.yaml",
			`{"network":{"devices":[{"networkName":"segment-1"}]},"workspace":{"datacenter":"dc1","datastore":"ds1",` +
				`"folder":"/dc1/vm/lab-x7k2p","resourcePool":"/dc1/host/c1/Resources","server":"192.0.2.1"}}`,
			machineset.Options{Platform: configv1.VSpherePlatformType, Version: "2022", Image: "/dc1/vm/templates/windows-2022"},
			&machinev1beta1.VSphereMachineProviderSpec{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := test.options
			o.InfrastructureName, o.Replicas, o.Worker = "lab-x7k2p", 1, &runtime.RawExtension{Raw: []byte(test.worker)}
			set, err := machineset.Generate(o)
			if err != nil {
				t.Fatal(err)
			}
			rendered, err := machineset.Render(set)
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := yaml.UnmarshalStrict(rendered, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(read(t, test.name).Object, got); diff != "" {
				t.Errorf("the example (-) and what the generator makes (+):\n%s", diff)
			}
			decoder := json.NewDecoder(bytes.NewReader(set.Spec.Template.Spec.ProviderSpec.Value.Raw))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(test.strict); err != nil {
				t.Errorf("the Machine API does not know all fields: %v", err)
			}
			for _, line := range []string{"apiVersion: machine.openshift.io/v1beta1\nkind: MachineSet\nmetadata:\n",
				"\nspec:\n  replicas: 1\n  selector:\n"} {
				if !strings.Contains(string(rendered), line) {
					t.Errorf("the order is not that of the guides:\n%s", rendered)
				}
			}
		})
	}
}

// awsProviderSpec adds a field of the guides that the type lacks.
type awsProviderSpec struct {
	machinev1beta1.AWSMachineProviderConfig
	UserDataSecret struct{ Name, Namespace string } `json:"userDataSecret"`
}

//
func TestNamespace_IsMonitored(t *testing.T) {
	namespace := read(t, "wmco-namespace.yaml")
	if namespace.GetName() != "openshift-windows-machine-config-operator" ||
		namespace.GetLabels()["openshift.io/cluster-monitoring"] != "true" {
		t.Error(namespace)
	}
}

//
func TestOperatorLifecycleManager(t *testing.T) {
	const namespace = "openshift-windows-machine-config-operator"
	group := read(t, "wmco-og.yaml")
	targets, _, err := unstructured.NestedStringSlice(group.Object, "spec", "targetNamespaces")
	if err != nil || group.GetName() != "windows-machine-config-operator" || group.GetNamespace() != namespace ||
		!slices.Equal(targets, []string{namespace}) {
		t.Errorf("%v, %v", group, err)
	}
	subscription := read(t, "wmco-sub.yaml")
	want := map[string]any{
		"channel": "stable", "installPlanApproval": "Automatic", "name": "windows-machine-config-operator",
		"source": "redhat-operators", "sourceNamespace": "openshift-marketplace",
	}
	if diff := cmp.Diff(want, subscription.Object["spec"]); diff != "" || subscription.GetNamespace() != namespace {
		t.Error(diff)
	}
}

// The example contains every field of the kind, and the operator accepts it.
func TestDisruptionPolicy_ExampleIsCompleteAndValid(t *testing.T) {
	object := read(t, "windows-disruption-policy.yaml")
	var example v1alpha1.WindowsDisruptionPolicy
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object,
		&example, true); err != nil {
		t.Fatal(err)
	}
	if example.Name != v1alpha1.DisruptionPolicyName {
		t.Errorf("the operator does not follow the policy %s", example.Name)
	}
	if settings, err := disruptionpolicy.Parse(example.Spec); err != nil || len(settings.Windows) == 0 {
		t.Errorf("%+v, %v", settings, err)
	}
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		t.Fatal(err)
	}
	for field := range reflect.TypeFor[v1alpha1.WindowsDisruptionPolicySpec]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if _, found := spec[name]; !found {
			t.Errorf("the example does not show %s", name)
		}
	}
}

//
func TestWebServer_CommandExistsInImage(t *testing.T) {
	for _, name := range []string{"win-webserver.yaml", "win-webserver-tolerations.yaml"} {
		containers, _, err := unstructured.NestedSlice(read(t, name).Object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) != 1 {
			t.Fatal(containers, err)
		}
		container := containers[0].(map[string]any)
		command := container["command"].([]any)
		if container["image"] != "mcr.microsoft.com/windows/servercore:ltsc2019" || command[0] != "powershell.exe" ||
			command[1] != "-command" {
			t.Errorf("%s: %v", name, container)
		}
	}
}
