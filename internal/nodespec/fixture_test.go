package nodespec

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"
)

// testKubernetes is the minor version of Kubernetes of most tests.
const testKubernetes = "1.36"

// testInputs returns the inputs of a bring-your-own host on a cluster without a platform.
func testInputs() Inputs {
	return Inputs{
		Cluster: Cluster{
			Platform: "None", Version: "5.0.1",
			APIServerInternalURL: "https://api-int.lab.example.com:6443",
			APIServerCA:          "-----BEGIN CERTIFICATE-----\nQVBJIHNlcnZlcg==\n-----END CERTIFICATE-----\n",
			KubeletClientCA:      "-----BEGIN CERTIFICATE-----\na3ViZWxldA==\n-----END CERTIFICATE-----\n",
			ServiceCIDRs:         []string{"172.30.0.0/16"},
			Kubelet:              WorkerKubelet{ClusterDNS: []string{"172.30.0.10"}, ClusterDomain: "cluster.local"},
			Network: ClusterNetwork{Type: "OVNKubernetes", HybridOverlay: true,
				HybridClusterNetworks: []string{"10.132.0.0/14"}},
		},
		Kubernetes:      testKubernetes,
		Instance:        Instance{Name: "10-1-42-1-8a4c07d2", NodeName: "win-a", NodeIP: "10.1.42.1", BYOH: true},
		Payload:         testPayload(),
		Agent:           testFile("wicd.exe"),
		OperatorVersion: "1.2.3",
	}
}

// azureInputs returns the inputs of a Machine on Azure with an assigned pod subnet and all optional settings.
func azureInputs() Inputs {
	in := testInputs()
	port := int32(9898)
	in.Cluster.Platform = "Azure"
	in.Cluster.Kubelet.CloudProvider = "external"
	in.Cluster.Network.VXLANPort = &port
	in.Cluster.ServiceCIDRs = []string{"172.30.0.0/16", "fd02::/112"}
	in.Instance = Instance{Name: "winworker-x2k4f", NodeName: "winworker-x2k4f", HostName: "winworker-x2k4f",
		NodeIP: "10.0.128.7"}
	in.Payload = append(in.Payload, testComponent("azure-cloud-node-manager", "azure-cloud-node-manager.exe"))
	in.Cluster.Kubelet.Settings = testSettings
	in.Cluster.Proxy = Proxy{HTTP: "http://user:secret-of-proxy@proxy.example.com:3128",
		HTTPS:   "https://proxy.example.com:3129",
		NoProxy: ".cluster.local,.svc,10.0.0.0/16,10.128.0.0/14,127.0.0.1,169.254.169.254,172.30.0.0/16,api-int.lab.example.com,localhost"}
	in.Cluster.TrustedCAs = []string{testCertificate}
	in.Cluster.MetricsServing = ServingCertificate{Certificate: testCertificate,
		Key:      "-----BEGIN PRIVATE KEY-----\nc2VjcmV0LW9mLWV4cG9ydGVy\n-----END PRIVATE KEY-----\n",
		ClientCA: "-----BEGIN CERTIFICATE-----\nQ2xpZW50cw==\n-----END CERTIFICATE-----\n"}
	in.PodSubnet = "10.132.0.0/23"
	in.LogSettings = LogSettings{FileSize: "100Mi", FileAge: 168 * time.Hour, FlushInterval: 5 * time.Second}
	in.Debug = true
	return in
}

// testSettings are the settings of a worker pool, including settings that Windows nodes do not support.
const testSettings = `{"containerLogMaxSize":"20Mi","evictionHard":{"imagefs.available":"20%","memory.available":"100Mi","nodefs.available":"5%","nodefs.inodesFree":"5%"},
"featureGates":{"AdminNetworkPolicy":true,"RotateKubeletServerCertificate":true,"WinDSR":false},"kubeAPIQPS":100,"maxPods":120,
"tlsCipherSuites":["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],"tlsMinVersion":"VersionTLS12"}`

// awsInputs returns the inputs of a Machine on AWS.
func awsInputs() Inputs {
	in := platformInputs("AWS")
	in.Instance.NodeName, in.PodSubnet = "ip-10-0-128-7.ec2.internal", "10.132.0.0/23"
	return in
}

// platformInputs returns the inputs of a Machine on a platform, with the payload of the platform.
func platformInputs(platform string) Inputs {
	in := testInputs()
	in.Cluster.Platform = platform
	in.Instance = Instance{Name: "winworker-x2k4f", NodeName: "winworker-x2k4f", HostName: "winworker-x2k4f",
		NodeIP: "10.0.128.7"}
	switch platform {
	case "AWS":
		in.Payload = append(in.Payload, testComponent("ecr-credential-provider", "ecr-credential-provider.exe"))
	case "Azure":
		in.Payload = append(in.Payload, testComponent("azure-cloud-node-manager", "azure-cloud-node-manager.exe"))
	}
	if platform != "None" && platform != "BareMetal" {
		in.Cluster.Kubelet.CloudProvider = "external"
	}
	in.LogSettings = LogSettings{FileSize: "100Mi", FileAge: 168 * time.Hour}
	return in
}

func testPayload() []Component {
	return []Component{
		testComponent("containerd", "containerd.exe", "containerd-shim-runhcs-v1.exe"),
		testComponent("kubelet", "kubelet.exe"),
		testComponent("kube-proxy", "kube-proxy.exe"),
		testComponent("kube-log-runner", "kube-log-runner.exe"),
		testComponent("cni", "win-overlay.exe", "host-local.exe", "win-bridge.exe"),
		testComponent("hybrid-overlay-node", "hybrid-overlay-node.exe"),
		testComponent("windows_exporter", "windows_exporter.exe"),
		testComponent("csi-proxy", "csi-proxy.exe"),
	}
}

func testComponent(name string, files ...string) Component {
	c := Component{Name: name, Version: "v1.0.0"}
	for _, file := range files {
		c.Files = append(c.Files, testFile(file))
	}
	return c
}

func testFile(name string) PayloadFile {
	sum := sha256.Sum256([]byte(name))
	return PayloadFile{Name: name, SHA256: hex.EncodeToString(sum[:]), Size: int64(1000 + len(name))}
}

func mustMake(t testing.TB, in Inputs) NodeSpec {
	t.Helper()
	spec, err := Make(in)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}
