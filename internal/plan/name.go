package plan

import "fmt"

// Name is the name of the step that does an operation: its kind and its target. It holds no secret.
func Name(operation Operation) string {
	switch o := operation.(type) {
	case EnableFeature:
		return "EnableFeature " + o.Feature
	case DisableFeature:
		return "DisableFeature " + o.Feature
	case SetHostName:
		return "SetHostName " + o.HostName
	case Reboot:
		return "Reboot"
	case MakeDirectory:
		return "MakeDirectory " + o.Directory.Path
	case InstallRelease:
		return "InstallRelease " + o.Release.Component
	case WriteFile:
		return "WriteFile " + o.File.Path
	case MakeLink:
		return "MakeLink " + o.Link.Path
	case SetEnvironment:
		return "SetEnvironment " + o.Name
	case SetFirewallRule:
		return "SetFirewallRule " + o.Rule.Name
	case DeleteFirewallRule:
		return "DeleteFirewallRule " + o.Rule
	case RequestCertificate:
		return "RequestCertificate " + o.Identity.CommonName
	case InstallCertificate:
		return "InstallCertificate " + o.Identity.CommonName
	case ConfigureService:
		return "ConfigureService " + o.Service.Name
	case StartService:
		return "StartService " + o.Service
	case StopService:
		return "StopService " + o.Service
	case DeleteService:
		return "DeleteService " + o.Service
	case RestoreService:
		return "RestoreService " + o.Service.Name
	case AwaitNetwork:
		return "AwaitNetwork " + o.Network
	case CreateEndpoint:
		return "CreateEndpoint " + o.Name
	case DeleteNetwork:
		return "DeleteNetwork " + o.Network
	case KillProcess:
		return "KillProcess " + o.Process.Name
	case RemovePath:
		return "RemovePath " + o.Path
	}
	return fmt.Sprintf("%T", operation)
}
