package testenv

import (
	"maps"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/lab/payload"
)

// legacyBootstrapperServices returns the services of version 6. Windows starts each service at boot.
func legacyBootstrapperServices(in legacyInputs) []host.ServiceConfig {
	service := func(name, line string, dependencies ...string) host.ServiceConfig {
		return host.ServiceConfig{Name: name, CommandLine: line, StartType: host.StartAutomatic, Dependencies: dependencies}
	}
	kubelet := service("kubelet",
		`C:\k\kubelet.exe --config=C:\k\kubelet.conf --bootstrap-kubeconfig=C:\k\bootstrap-kubeconfig --kubeconfig=C:\k\kubeconfig `+
			`--cert-dir=c:\var\lib\kubelet\pki\ --windows-service --logtostderr=false --log-file=C:\var\log\kubelet\kubelet.log `+
			`--register-with-taints=os=Windows:NoSchedule --node-labels=node.openshift.io/os_id=Windows --container-runtime=remote `+
			`--container-runtime-endpoint=npipe://./pipe/containerd-containerd --resolv-conf= --hostname-override=`+in.node+
			` --node-ip=`+in.address+` --v=3`, "containerd")
	kubelet.Description = "OpenShift Kubelet"
	return []host.ServiceConfig{
		service("containerd",
			`C:\k\containerd\containerd.exe --config C:\k\containerd\containerd_conf.toml --log-file C:\var\log\containerd\containerd.log --run-service`),
		kubelet,
		service("windows_exporter",
			`C:\k\windows_exporter.exe --collectors.enabled cpu,cs,logical_disk,net,os,service,system,textfile,container,memory,cpu_info`),
		service("hybrid-overlay-node", `C:\k\hybrid-overlay-node.exe --node `+in.node+
			` --k8s-kubeconfig C:\k\kubeconfig --windows-service `+
			`--logfile C:\var\log\hybrid-overlay\hybrid-overlay.log`, "kubelet"),
		service("kube-proxy",
			`C:\k\kube-proxy.exe --windows-service --v=4 --proxy-mode=kernelspace --feature-gates=WinOverlay=true `+
				`--hostname-override=`+in.node+` --kubeconfig=C:\k\kubeconfig --cluster-cidr=`+in.subnet+
				` --log-dir=C:\var\log\kube-proxy `+
				`--logtostderr=false --network-name=`+legacyNetwork+` --source-vip=10.132.9.2 --enable-dsr=false`,
			"hybrid-overlay-node"),
	}
}

// legacyBootstrapperLayout returns the layout of version 6: the bootstrapper and its files, and containerd instead of
// Docker.
func legacyBootstrapperLayout(in legacyInputs) legacyLayout {
	files := map[string]string{
		`C:\k\wmcb.exe`:                          "MZ",
		`C:\k\kube-proxy.exe`:                    in.idle,
		`C:\k\hybrid-overlay-node.exe`:           in.idle,
		`C:\k\windows_exporter.exe`:              in.idle,
		`C:\k\kubelet.conf`:                      legacyBootstrapperConf,
		`C:\k\kubelet-ca.crt`:                    string(in.authority),
		`C:\k\kubeconfig`:                        in.formatKubeconfig(legacyCertificateUser),
		`C:\k\bootstrap-kubeconfig`:              in.formatKubeconfig(legacyTokenUser),
		`C:\k\containerd\containerd_conf.toml`:   legacyContainerdConf,
		`C:\k\cni\config\cni.conf`:               `{"cniVersion":"0.2.0","name":"` + legacyNetwork + `","type":"win-overlay"}`,
		`C:\Temp\hns.psm1`:                       "# of an older operator\n",
		`C:\Temp\wget-ignore-cert.ps1`:           "# of an older operator\n",
		`C:\Temp\windows-defender-exclusion.ps1`: "# of an older operator\n",
		`C:\Temp\of-somebody-else.ps1`:           "# not of an older operator\n",
		`C:\Windows\Temp\worker.ign`:             "{}\n",
		`C:\var\log\kubelet\kubelet.log`:         "I0101\n",
	}
	maps.Copy(files, legacyPrograms(
		payload.Executable{Component: "containerd", File: "containerd.exe", Version: "v1.5.13"},
		payload.Executable{Component: "containerd", File: "containerd-shim-runhcs-v1.exe", Version: "v0.8.24"},
		payload.Executable{Component: "kubelet", File: "kubelet.exe", Version: "v1.24.6"},
		payload.Executable{Component: "cni", File: "win-overlay.exe", Version: "v1.1.1"},
		payload.Executable{Component: "cni", File: "host-local.exe", Version: "v1.1.1"},
	))
	return legacyLayout{
		services: legacyBootstrapperServices(in), files: files, directories: []string{`C:\var\log\containerd`,
			`C:\var\log\hybrid-overlay`, `C:\var\log\kube-proxy`},
		started: []string{"kube-proxy", "windows_exporter"},
	}
}

const legacyBootstrapperConf = `{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1","rotateCertificates":true,"serverTLSBootstrap":true,
"authentication":{"x509":{"clientCAFile":"C:\\k\\kubelet-ca.crt"},"anonymous":{"enabled":false}},"clusterDomain":"cluster.local","cgroupsPerQOS":false,
"runtimeRequestTimeout":"10m0s","maxPods":250,"kubeAPIQPS":50,"kubeAPIBurst":100,"serializeImagePulls":false,"featureGates":{"RotateKubeletServerCertificate":true},
"containerLogMaxSize":"50Mi","systemReserved":{"cpu":"500m","ephemeral-storage":"1Gi","memory":"1Gi"},"enforceNodeAllocatable":[]}`
