package machineset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/yaml"
)

//
func TestGenerate_LabelsMatchGuides(t *testing.T) {
	for platform, name := range map[configv1.PlatformType]string{
		"AWS": "lab-x7k2p-windows-worker-us-east-1a", "GCP": "lab-x7k2p-windows-worker-b", "Azure": "winworker",
		"VSphere": "winworker",
	} {
		t.Run(string(platform), func(t *testing.T) {
			set, err := Generate(newOptions(t, platform))
			if err != nil {
				t.Fatal(err)
			}
			data, err := Render(set)
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Kind, APIVersion string
				Metadata         map[string]any
				Spec             struct {
					Replicas int
					Selector map[string]any
					Template struct {
						Metadata map[string]any
						Spec     struct{ Metadata map[string]any }
					}
				}
			}
			if err := yaml.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			if got.Kind != "MachineSet" || got.APIVersion != "machine.openshift.io/v1beta1" || got.Spec.Replicas != 1 {
				t.Errorf("it is %s %s with %d replicas", got.APIVersion, got.Kind, got.Spec.Replicas)
			}
			cluster := "machine.openshift.io/cluster-api-cluster"
			metadata := map[string]any{"name": name, "namespace": "openshift-machine-api",
				"labels": map[string]any{cluster: "lab-x7k2p"},
				"annotations": map[string]any{
					"capacity.cluster-autoscaler.kubernetes.io/labels": "kubernetes.io/arch=amd64,kubernetes.io/os=windows," +
						"node.kubernetes.io/windows-build=10.0.20348,node.openshift.io/os_id=Windows",
					"capacity.cluster-autoscaler.kubernetes.io/taints": "os=Windows:NoSchedule",
				}}
			if diff := cmp.Diff(metadata, got.Metadata); diff != "" {
				t.Errorf("metadata:\n%s", diff)
			}
			selector := map[string]any{"matchLabels": map[string]any{cluster: "lab-x7k2p",
				"machine.openshift.io/cluster-api-machineset": name}}
			if diff := cmp.Diff(selector, got.Spec.Selector); diff != "" {
				t.Errorf("selector:\n%s", diff)
			}
			template := map[string]any{"labels": map[string]any{
				cluster: "lab-x7k2p", "machine.openshift.io/cluster-api-machineset": name,
				"machine.openshift.io/cluster-api-machine-role": "worker",
				"machine.openshift.io/cluster-api-machine-type": "worker",
				"machine.openshift.io/os-id":                    "Windows",
			}}
			if diff := cmp.Diff(template, got.Spec.Template.Metadata); diff != "" {
				t.Errorf("the Machines' labels:\n%s", diff)
			}
			node := map[string]any{"labels": map[string]any{"node-role.kubernetes.io/worker": ""}}
			if diff := cmp.Diff(node, got.Spec.Template.Spec.Metadata); diff != "" {
				t.Errorf("the nodes' labels:\n%s", diff)
			}
		})
	}
}
