package nodespec

// ServiceCloudNodeManager is the name of cloud-node-manager's Windows service.
const ServiceCloudNodeManager = "cloud-node-manager"

// Places of cloud-node-manager.
const (
	cloudNodeManagerDirectory  = Root + `\cloud-node-manager`
	cloudNodeManagerPKI        = cloudNodeManagerDirectory + `\pki`
	cloudNodeManagerKubeconfig = cloudNodeManagerDirectory + `\kubeconfig`
)

// cloudNodeManager tells the cluster the zone and addresses of a node on Azure. Source:
// sigs.k8s.io/cloud-provider-azure, cmd/cloud-node-manager/app/options: what it needs it gets from the instance
// metadata service, so that it has no configuration file.
func cloudNodeManager(in Inputs, p *programs) Service {
	const name = ServiceCloudNodeManager
	s := service(name, logged(in, p, name,
		p.path("azure-cloud-node-manager.exe"), "--windows-service", "--node-name="+in.Instance.NodeName,
		// Azure's routes are for clusters whose pod network is made of them.
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
