package nodespec

// ServiceCSIProxy is the name of csi-proxy's Windows service.
const ServiceCSIProxy = "csi-proxy"

// csiProxyService mounts and formats disks of the host for the pods of CSI drivers. The program must be the process of
// the service. On a stop request, csi-proxy reports success but keeps serving its pipes until Windows ends the
// process. A child of kube-log-runner would survive and prevent the next start. Source: kubernetes-csi/csi-proxy,
// cmd/csi-proxy/main.go, initService and Execute.
func csiProxyService(in Inputs, p *programs) Service {
	return newService(ServiceCSIProxy, []string{
		p.executablePath("csi-proxy.exe"), "-windows-service", "-logtostderr=false", "-log_file=" + LogPath(ServiceCSIProxy),
		// klog would truncate the file at 1800 MiB; the agent rotates the file.
		"-log_file_max_size=0", verbosityFlag(in),
	})
}
