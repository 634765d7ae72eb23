package nodespec

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"
)

// testInputs are those of a bring-your-own host on a cluster without a platform.
func testInputs() Inputs {
	return Inputs{
		Cluster: Cluster{
			Platform: "None", InfrastructureName: "lab-x7k2p", Version: "5.0.1",
			APIServerInternalURL: "https://api-int.lab.example.com:6443",
			APIServerCA:          "-----BEGIN CERTIFICATE-----\nQVBJIHNlcnZlcg==\n-----END CERTIFICATE-----\n",
			KubeletClientCA:      "-----BEGIN CERTIFICATE-----\na3ViZWxldA==\n-----END CERTIFICATE-----\n",
			ServiceCIDRs:         []string{"172.30.0.0/16"},
			Kubelet:              WorkerKubelet{ClusterDNS: []string{"172.30.0.10"}, ClusterDomain: "cluster.local"},
			Network:              ClusterNetwork{Type: "OVNKubernetes", HybridOverlay: true, HybridClusterNetworks: []string{"10.132.0.0/14"}},
		},
		Instance:        Instance{Name: "10-1-42-1-8a4c07d2", NodeName: "win-a", NodeIP: "10.1.42.1", BYOH: true},
		Payload:         testPayload(),
		Agent:           testFile("wicd.exe"),
		OperatorVersion: "1.2.3",
	}
}

// azureInputs are those of a Machine on Azure whose network is assigned, with everything that can be set.
func azureInputs() Inputs {
	in := testInputs()
	port := int32(9898)
	in.Cluster.Platform = "Azure"
	in.Cluster.Kubelet.CloudProvider = "external"
	in.Cluster.Network.VXLANPort = &port
	in.Cluster.ServiceCIDRs = []string{"172.30.0.0/16", "fd02::/112"}
	in.Instance = Instance{Name: "winworker-x2k4f", NodeName: "winworker-x2k4f", HostName: "winworker-x2k4f", NodeIP: "10.0.128.7"}
	in.Payload = append(in.Payload, testComponent("azure-cloud-node-manager", "azure-cloud-node-manager.exe"))
	in.PodSubnet = "10.132.0.0/23"
	in.LogSettings = LogSettings{FileSize: "100Mi", FileAge: 168 * time.Hour, FlushInterval: 5 * time.Second}
	in.Debug = true
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
