package instance

import (
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// domainUsers are domain accounts in the host's group Administrators, in both forms.
var domainUsers = []string{`CORP\jane`, "jane.doe@corp.example.com"}

// L-20
func TestConnect_LogsInAsDomainUser(t *testing.T) {
	for _, user := range domainUsers {
		for shell, faults := range map[string][]winhost.Fault{
			"cmd.exe": nil, "PowerShell": {winhost.PowerShellDefaultShell},
		} {
			t.Run(user+" in "+shell, func(t *testing.T) {
				instance := machineInstance()
				instance.Spec.Source = v1alpha1.Source{ConfigMapKey: instance.Spec.Address}
				instance.Spec.Username = user
				x := newTrial(t, instance)
				h := x.withAgent()
				for _, fault := range faults {
					h.server.Inject(fault, winhost.Parameters{})
				}
				instance, _ = x.reconcile()
				if instance.Status.Host == nil || !slices.Contains(h.agentCommands(), "facts") {
					t.Errorf("the host is %+v, and was asked for %q: %s", instance.Status.Host, h.agentCommands(), instance.Status.NextAction)
				}
				for _, line := range h.commandLines() {
					if strings.Contains(line, "jane") {
						t.Errorf("the user's name is in a command: %s", line)
					}
				}
				if forbidden := h.machine.Journal().Count(winhost.KindForbidden); forbidden > 0 {
					t.Errorf("%d commands are not the agent's", forbidden)
				}
			})
		}
	}
}
