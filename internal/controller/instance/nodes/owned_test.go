package nodes

import (
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// The kubelet registers with the labels and taint of nodespec, and the operator preserves them. Other
// components depend on these names.
func TestOwnedFields_LabelsAndTaintMatchAPI(t *testing.T) {
	labels := nodespec.NodeLabels(true)
	if len(labels) != 2 || labels["node.openshift.io/os_id"] != "Windows" || labels["windowsmachineconfig.openshift.io/byoh"] != "true" {
		t.Errorf("labels of a listed host are %v", labels)
	}
	if labels := nodespec.NodeLabels(false); len(labels) != 1 || labels["node.openshift.io/os_id"] != "Windows" {
		t.Errorf("labels of a Machine's host are %v", labels)
	}
	if windows := windowsTaint(); windows.Key != v1alpha1.TaintWindows || windows.ToString() != "os=Windows:NoSchedule" {
		t.Errorf("the taint is %s", windows.ToString())
	}
}
