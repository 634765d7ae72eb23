package support

import (
	"slices"
	"strings"
	"testing"
)

// R-155, D-13
func TestReleaseLine_KubernetesFor(t *testing.T) {
	line := CurrentLine()
	for cluster, want := range map[string]string{
		"4.19.9": "", "4.20.0": "1.33", "4.21.17": "1.34", "4.22.0-rc.1": "1.35", "4.23.1": "1.36", "4.24.0": "",
		"5.0.0": "1.36", "5.0.0-okd-scos.3": "1.36", "5.1.0-ec.2": "1.37",
		"5.2.0": "1.37", "5.4.9": "1.37", "5.5.0": "", "6.0.0": "", "": "", "latest": "",
	} {
		if got := line.KubernetesFor(cluster); got != want {
			t.Errorf("OpenShift %s has Kubernetes %q, want %q", cluster, got, want)
		}
		if advised, want := line.UntestedAdvice(cluster) != "", strings.HasPrefix(cluster, "5.2") || strings.HasPrefix(cluster, "5.4"); advised != want {
			t.Errorf("OpenShift %s: advice %v, want %v", cluster, advised, want)
		}
	}
	if got, want := line.KubernetesMinors(), []string{"1.33", "1.34", "1.35", "1.36", "1.37"}; !slices.Equal(got, want) {
		t.Errorf("the versions of Kubernetes are %v, want %v", got, want)
	}
}

// A test that compares versions relies on the order.
func TestReleaseLines_MinorsInOrder(t *testing.T) {
	for _, line := range ReleaseLines() {
		for i, minor := range line.Minors {
			if got, served := line.MinorFor(minor.MinVersion()); !served || got != minor {
				t.Errorf("OpenShift %s: %+v, %v", minor.MinVersion(), got, served)
			}
			if i > 0 && minor.Kubernetes < line.Minors[i-1].Kubernetes {
				t.Errorf("OpenShift %s has Kubernetes %s, and the version before has %s", minor.OpenShift, minor.Kubernetes,
					line.Minors[i-1].Kubernetes)
			}
		}
	}
}
