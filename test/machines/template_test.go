package machines

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// Machines work even if their template was created without the step of docs/vsphere.md that deletes the SSH host
// keys, and each of them reports the fault. Machines of the correct template have nothing to report.
func TestTemplate_SharedHostKeyReported(t *testing.T) {
	l := start(t, "VSphere", testenv.Options{})
	l.startOperator()
	l.createMachineSet("right", 2, testenv.MachineSetOptions{})
	l.createMachineSet("wrong", 2, testenv.MachineSetOptions{Image: "windows-server-2022-with-host-key"})
	for set, shared := range map[string]bool{"right": false, "wrong": true} {
		for _, name := range l.waitUntilReady(set, 2) {
			l.waitForInstance(name, "to report its host key", func(i *v1alpha1.WindowsInstance) bool {
				reachable := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionReachable)
				return reachable != nil && strings.Contains(reachable.Message, "it shares its SSH host key with") == shared
			})
		}
	}
}
