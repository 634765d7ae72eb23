package deploy_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/deploy"
)

// column is a column of kubectl get in a CustomResourceDefinition.
type column struct {
	Name     string `json:"name"`
	JSONPath string `json:"jsonPath"`
	Priority int32  `json:"priority"`
}

// kubectlColumns returns the columns of kubectl get winst, without NAME.
func kubectlColumns(t *testing.T) []column {
	t.Helper()
	data, err := deploy.Files.ReadFile("crd/windowsmachineconfig.openshift.io_windowsinstances.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Columns []column `json:"additionalPrinterColumns"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(data, &definition); err != nil || len(definition.Spec.Versions) != 1 {
		t.Fatalf("%d versions, error %v", len(definition.Spec.Versions), err)
	}
	return definition.Spec.Versions[0].Columns
}

// A working node that waits for a change has a status with the reason for the wait. The table must show that the
// node works.
func TestInstanceColumns_ShowWorkingNodes(t *testing.T) {
	instance := v1alpha1.WindowsInstance{Status: v1alpha1.WindowsInstanceStatus{
		Summary: v1alpha1.ReasonOutsideMaintenanceWindow,
		Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionReachable, Status: metav1.ConditionUnknown},
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue},
			{Type: v1alpha1.ConditionUpToDate, Status: metav1.ConditionFalse},
		},
	}}
	encoded, err := json.Marshal(instance)
	if err != nil {
		t.Fatal(err)
	}
	var object any
	if err := json.Unmarshal(encoded, &object); err != nil {
		t.Fatal(err)
	}
	var names []string
	cells := map[string]string{}
	for _, c := range kubectlColumns(t) {
		if c.Priority > 0 {
			continue // only with -o wide
		}
		names = append(names, c.Name)
		path, cell := jsonpath.New(c.Name).AllowMissingKeys(true), &bytes.Buffer{}
		if err := path.Parse("{" + c.JSONPath + "}"); err != nil {
			t.Fatal(err)
		}
		if err := path.Execute(cell, object); err != nil {
			t.Fatal(err)
		}
		cells[c.Name] = cell.String()
	}
	want := []string{"Address", "Source", "Node", "Version", "Ready", "UpToDate", "Status", "Age"}
	if !slices.Equal(names, want) {
		t.Errorf("the columns are %q, want %q", names, want)
	}
	if cells["Ready"] != "True" || cells["UpToDate"] != "False" || cells["Status"] != "OutsideMaintenanceWindow" {
		t.Errorf("a row has %v", cells)
	}
}
