package nodespec

// ServiceCloudNodeManager is the name of cloud-node-manager's Windows service.
const ServiceCloudNodeManager = "cloud-node-manager"

// Paths of cloud-node-manager.
const (
	cloudNodeManagerDirectory  = Root + `\cloud-node-manager`
	cloudNodeManagerPKI        = cloudNodeManagerDirectory + `\pki`
	cloudNodeManagerKubeconfig = cloudNodeManagerDirectory + `\kubeconfig`
)

// cloudNodeManager reports the zone and addresses of a node on Azure to the cluster. The program reads its input
// from the instance metadata service and therefore has no configuration file. Source:
// sigs.k8s.io/cloud-provider-azure, cmd/cloud-node-manager/app/options.
func cloudNodeManager(in Inputs, p *programs) Service {
	const name = ServiceCloudNodeManager
	s := service(name, logged(in, p, name,
		p.path("azure-cloud-node-manager.exe"), "--windows-service", "--node-name="+in.Instance.NodeName,
		// Azure's routes are for clusters with a routed pod network.
		"--wait-routes=false", "--kubeconfig="+cloudNodeManagerKubeconfig, verbosity(in)), ServiceKubelet)
	s.StartType = startAfterBoot
	s.Environment = proxyEnvironment(in)
	s.Needs = []Need{NeedCertificateOf(name)}
	s.RestartOn = clientFiles(name)
	return s
}

func cloudNodeManagerFiles(in Inputs) []File {
	if in.Cluster.Platform != platformAzure {
		return nil
	}
	return []File{inherited(cloudNodeManagerKubeconfig, kubeconfig(in, ServiceCloudNodeManager))}
}

func cloudNodeManagerDirectories(in Inputs) []Directory {
	if in.Cluster.Platform != platformAzure {
		return nil
	}
	return []Directory{administrators(cloudNodeManagerDirectory), administrators(cloudNodeManagerPKI)}
}
