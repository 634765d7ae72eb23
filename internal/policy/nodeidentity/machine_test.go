package nodeidentity

import (
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

//
func TestWindowsMachines(t *testing.T) {
	const osID, role = "machine.openshift.io/os-id", "machine.openshift.io/cluster-api-machine-role"
	listed := &v1alpha1.WindowsInstance{Spec: v1alpha1.WindowsInstanceSpec{Address: "10.0.0.1"}}
	for name, c := range map[string]struct {
		labels map[string]string
		want   bool
	}{
		"a worker with the label is one":                                 {map[string]string{osID: "Windows", role: "worker"}, true},
		"a Machine of an infrastructure MachineSet is one":               {map[string]string{osID: "Windows", role: "infra"}, true},
		"a Machine without a role is one":                                {map[string]string{osID: "Windows"}, true},
		"a Machine of the control plane is none, although it is labeled": {map[string]string{osID: "Windows", role: "master"}, false},
		"a Linux worker is none":                                         {map[string]string{osID: "Linux", role: "worker"}, false},
		"a value in lower case is none":                                  {map[string]string{osID: "windows"}, false},
		"a Machine without labels is none":                               {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: c.labels}}
			machine.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
			set := &machinev1beta1.MachineSet{}
			set.Spec.Template.Labels = c.labels
			if got := IsWindowsMachine(machine); got != c.want {
				t.Errorf("a Machine: %t, want %t", got, c.want)
			}
			if got := IsWindowsMachineSet(set); got != c.want {
				t.Errorf("a MachineSet: %t, want %t", got, c.want)
			}
			if got := IsUnmanagedMachine(listed, machine); got == c.want {
				t.Errorf("it is left to a listed host with its address: %t, want %t", got, !c.want)
			}
		})
	}
}
