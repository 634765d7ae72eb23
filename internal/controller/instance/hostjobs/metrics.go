package hostjobs

import (
	"strings"

	"github.com/windows-machine-config/wmco/internal/plan"
)

// otherKind is the kind of steps that are unknown to agents of this version.
const otherKind = "Other"

// stepKinds are the kinds of agent steps: the operations of a plan, and checks.
var stepKinds = kindsOf(
	plan.EnableFeature{}, plan.DisableFeature{}, plan.SetHostName{}, plan.Reboot{}, plan.MakeDirectory{},
	plan.InstallRelease{}, plan.WriteFile{},
	plan.MakeLink{}, plan.SetEnvironment{}, plan.SetFirewallRule{}, plan.DeleteFirewallRule{}, plan.AddEventSource{},
	plan.RemoveEventSource{},
	plan.AddExclusion{}, plan.RemoveExclusion{}, plan.TrustCertificate{}, plan.DistrustCertificate{},
	plan.AddRoute{}, plan.DeleteRoute{},
	plan.RequestCertificate{}, plan.InstallCertificate{}, plan.ConfigureService{}, plan.StartService{}, plan.StopService{}, plan.EndPods{},
	plan.DeleteService{}, plan.SetStartType{}, plan.SetRegistryNumber{}, plan.DeleteRegistryValue{},
	plan.AwaitNetwork{}, plan.CreateEndpoint{}, plan.AttachEndpoint{}, plan.DisableDNSRegistration{}, plan.DeleteNetwork{}, plan.KillProcess{},
	plan.RemovePath{}, plan.RestoreService{},
)

func kindsOf(operations ...plan.Operation) map[string]bool {
	kinds := map[string]bool{"Check": true}
	for _, operation := range operations {
		kind, _, _ := strings.Cut(plan.Name(operation), " ")
		kinds[kind] = true
	}
	return kinds
}

// stepKind returns the step's name without its target, to limit the number of series. Unknown names from the host
// map to otherKind.
func stepKind(name string) string {
	if kind, _, _ := strings.Cut(name, " "); stepKinds[kind] {
		return kind
	}
	return otherKind
}
