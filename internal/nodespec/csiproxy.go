package nodespec

// ServiceCSIProxy is the name of csi-proxy's Windows service.
const ServiceCSIProxy = "csi-proxy"

// csiProxy lets the CSI drivers' pods mount and format disks of the host. It must be the process of its service: when
// asked to stop it says that it has and goes on serving its pipes, until Windows ends that process; a child of
// kube-log-runner would be left and keep the next one from starting. Source: kubernetes-csi/csi-proxy,
// cmd/csi-proxy/main.go, initService and Execute.
func csiProxy(in Inputs, p *programs) Service {
	return service(ServiceCSIProxy, []string{
		p.path("csi-proxy.exe"), "-windows-service", "-logtostderr=false", "-log_file=" + LogPath(ServiceCSIProxy),
		// klog would empty the file at 1800 MiB; the agent rotates it.
		"-log_file_max_size=0", verbosity(in),
	})
}
