package testenv

import (
	"encoding/base64"
	"fmt"
	"maps"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/lab/payload"
)

// legacyLayout is the set of files and settings of a legacy operator on a host.
type legacyLayout struct {
	services    []host.ServiceConfig // in the order of their dependencies, the agent's last
	files       map[string]string
	links       map[string]string // their targets
	directories []string
	// variables are the machine's variables.
	variables map[string]string
	// started are the services to start, together with their dependencies.
	started []string
}

// idleProgram stands for programs that run as services without visible work.
const idleProgram = `C:\Windows\System32\svchost.exe`

// legacyInputs are the values that differ between hosts.
type legacyInputs struct {
	node, address, subnet, server, namespace string
	authority                                []byte
	idle                                     string // content of idleProgram
}

const legacyNetwork = "OVNKubernetesHybridOverlayNetwork"

// formatKubeconfig returns a kubeconfig with the kubelet's certificate, or with a token.
func (in legacyInputs) formatKubeconfig(user string) string {
	return "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
		fmt.Sprintf("clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]\n", in.server,
			base64.StdEncoding.EncodeToString(in.authority)) +
		"users: [{name: u, user: " + user + "}]\n"
}

const (
	legacyCertificateUser = `{client-certificate: 'C:\var\lib\kubelet\pki\kubelet-client-current.pem', client-key: 'C:\var\lib\kubelet\pki\kubelet-client-current.pem'}`
	legacyTokenUser       = `{token: an-older-token}`
)

// legacyDockerLayout returns the layout of WMCB. WMCB created the service of the kubelet and the operator created all
// other services, with programs directly in C:\k.
func legacyDockerLayout(in legacyInputs) legacyLayout {
	services := []host.ServiceConfig{
		{Name: "docker", DisplayName: "Docker Engine", CommandLine: `"C:\Program Files\Docker\dockerd.exe" --run-service`,
			StartType: host.StartAutomatic},
		{Name: "kubelet", Description: "OpenShift Kubelet", StartType: host.StartAutomatic, Dependencies: []string{"docker"},
			CommandLine: `C:\k\kubelet.exe --config=C:\k\kubelet.conf --bootstrap-kubeconfig=C:\k\bootstrap-kubeconfig --kubeconfig=C:\k\kubeconfig ` +
				`--cert-dir=c:\var\lib\kubelet\pki\ --windows-service --logtostderr=false --log-file=C:\var\log\kubelet\kubelet.log ` +
				`--register-with-taints=os=Windows:NoSchedule --node-labels=node.openshift.io/os_id=Windows --container-runtime=docker ` +
				`--resolv-conf= --v=3`},
		{Name: "hybrid-overlay-node", StartType: host.StartAutomatic, Dependencies: []string{"kubelet"},
			CommandLine: `C:\k\hybrid-overlay-node.exe --node ` + in.node +
				` --k8s-kubeconfig C:\k\kubeconfig --windows-service ` +
				`--logfile C:\var\log\hybrid-overlay\hybrid-overlay.log`},
		{Name: "kube-proxy", StartType: host.StartAutomatic, Dependencies: []string{"hybrid-overlay-node"},
			CommandLine: `C:\k\kube-proxy.exe --windows-service --v=4 --proxy-mode=kernelspace --feature-gates=WinOverlay=true ` +
				`--hostname-override=` + in.node + ` --kubeconfig=C:\k\kubeconfig --cluster-cidr=` + in.subnet +
				` --log-dir=C:\var\log\kube-proxy ` +
				`--logtostderr=false --network-name=` + legacyNetwork + ` --source-vip=10.132.9.2 --enable-dsr=false`},
	}
	files := map[string]string{
		`C:\k\kubelet.conf`:                      `{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1","cgroupsPerQOS":false}`,
		`C:\k\kubeconfig`:                        in.formatKubeconfig(legacyCertificateUser),
		`C:\k\bootstrap-kubeconfig`:              in.formatKubeconfig(legacyTokenUser),
		`C:\k\kubelet-ca.crt`:                    "an authority of that time\n",
		`C:\k\wmcb.exe`:                          "MZ",
		`C:\k\cni\win-overlay.exe`:               strings.Repeat("MZ", 1<<20), // larger than the limit for keeping an original file
		`C:\k\cni\config\cni.conf`:               `{"cniVersion":"0.2.0","type":"win-overlay"}`,
		`C:\var\log\kubelet\kubelet.log`:         "I0101\n",
		`C:\Temp\wget-ignore-cert.ps1`:           "# of an older operator\n",
		`C:\Temp\hns.psm1`:                       "# of an older operator\n",
		`C:\Temp\of-somebody-else.ps1`:           "# not of an older operator\n",
		`C:\var\log\hybrid-overlay\overlay.log`:  "I0101\n",
		`C:\Program Files\Docker\dockerd.exe`:    in.idle,
		`C:\k\kubelet.exe`:                       in.idle,
		`C:\k\hybrid-overlay-node.exe`:           in.idle,
		`C:\k\kube-proxy.exe`:                    in.idle,
		`C:\k\windows_exporter.exe`:              in.idle,
		`C:\ProgramData\docker\containers\a.txt`: "a container of that time\n",
	}
	return legacyLayout{services: services, files: files, started: []string{"kube-proxy"}}
}

// layoutFor returns the layout of a generation on a host.
func (k LegacyKind) layoutFor(in legacyInputs) (legacyLayout, error) {
	switch k {
	case LegacyDocker:
		return legacyDockerLayout(in), nil
	case LegacyBootstrapper:
		return legacyBootstrapperLayout(in), nil
	}
	return legacyContainerdLayout(in)
}

// legacyContainerdServices returns the services that WICD configures, without its own.
func legacyContainerdServices(in legacyInputs) []host.ServiceConfig {
	const runner = `C:\k\kube-log-runner.exe -log-file=C:\var\log\`
	service := func(name, line string, dependencies ...string) host.ServiceConfig {
		return host.ServiceConfig{Name: name, Description: "OpenShift managed " + name, CommandLine: line,
			StartType: host.StartManual, Dependencies: dependencies}
	}
	return []host.ServiceConfig{
		service("containerd",
			`C:\k\containerd\containerd.exe --config C:\k\containerd\containerd_conf.toml --log-file C:\var\log\containerd\containerd.log --run-service --log-level info`),
		service("kubelet", runner+
			`kubelet\kubelet.log C:\k\kubelet.exe --config=C:\k\kubelet.conf --bootstrap-kubeconfig=C:\k\bootstrap-kubeconfig `+
			`--kubeconfig=C:\k\kubeconfig --cert-dir=c:\var\lib\kubelet\pki\ --windows-service --node-labels=node.openshift.io/os_id=Windows `+
			`--windows-priorityclass=ABOVE_NORMAL_PRIORITY_CLASS --v=2 --hostname-override=`+in.node+` --node-ip=`+in.address,
			"containerd"),
		service("windows_exporter",
			`C:\k\windows_exporter.exe --collectors.enabled cpu,logical_disk,net,os,service,system,container,memory,cpu_info `+
				`--web.config.file C:\k\tls\windows-exporter-webconfig.yaml`),
		service("hybrid-overlay-node", `C:\k\hybrid-overlay-node.exe --node `+in.node+
			` --bootstrap-kubeconfig=C:\k\kubeconfig --cert-dir=C:\k\cni\config `+
			`--cert-duration=24h --windows-service --logfile C:\var\log\hybrid-overlay\hybrid-overlay.log --k8s-apiserver=`+
			in.server+` --k8s-cacert C:\k\bootstrap-ca.crt`, "kubelet"),
		service("csi-proxy",
			`C:\k\csi-proxy.exe -log_file=C:\var\log\csi-proxy\csi-proxy.log -logtostderr=false -windows-service --v=2`),
		service("kube-proxy",
			runner+`kube-proxy\kube-proxy.log C:\k\kube-proxy.exe --config C:\k\kube-proxy.conf --windows-service`,
			"hybrid-overlay-node"),
	}
}

// legacyContainerdLayout returns the layout of WICD.
func legacyContainerdLayout(in legacyInputs) (legacyLayout, error) {
	services := legacyContainerdServices(in)
	agent, err := legacyAgent(services)
	if err != nil {
		return legacyLayout{}, err
	}
	files := map[string]string{
		`C:\k\windows-instance-config-daemon.exe`:                    string(agent),
		`C:\k\hybrid-overlay-node.exe`:                               in.idle,
		`C:\k\kube-proxy.exe`:                                        in.idle,
		`C:\k\windows_exporter.exe`:                                  in.idle,
		`C:\k\csi-proxy.exe`:                                         in.idle,
		`C:\k\kubelet.conf`:                                          legacyKubeletConf,
		`C:\k\kubelet-ca.crt`:                                        string(in.authority),
		`C:\k\bootstrap-ca.crt`:                                      string(in.authority),
		`C:\k\bootstrap-kubeconfig`:                                  in.formatKubeconfig(legacyTokenUser),
		`C:\k\wicd-kubeconfig`:                                       in.formatKubeconfig(legacyTokenUser),
		`C:\k\kubeconfig`:                                            in.formatKubeconfig(legacyCertificateUser),
		`C:\k\ca-bundle.crt`:                                         "# user-ca-bundle:\n" + string(in.authority) + "\n\n",
		`C:\k\imported-certs.pem`:                                    string(in.authority),
		`C:\k\cloud.conf`:                                            "[Global]\n",
		`C:\k\kube-proxy.conf`:                                       "kind: KubeProxyConfiguration\napiVersion: kubeproxy.config.k8s.io/v1alpha1\n",
		`C:\k\wicd-certs\wicd-client-2026-11-01-00-00-00.pem`:        "a certificate and its key\n",
		`C:\k\wicd-certs\wicd-client-current.pem`:                    "a certificate and its key\n",
		`C:\k\tls\windows-exporter-webconfig.yaml`:                   "tls_server_config: {cert_file: 'C:\\k\\tls\\certs\\tls.crt', key_file: 'C:\\k\\tls\\certs\\tls.key'}\n",
		`C:\k\tls\certs\tls.crt`:                                     "a certificate\n",
		`C:\k\tls\certs\tls.key`:                                     "a key\n",
		`C:\k\containerd\containerd_conf.toml`:                       legacyContainerdConf,
		`C:\k\containerd\registries\registry.example.com\hosts.toml`: "server = \"https://registry.example.com/v2\"\n",
		`C:\k\cni\config\cni.conf`: `{"cniVersion":"0.2.0","name":"` + legacyNetwork +
			`","type":"win-overlay","apiVersion":2}`,
		`C:\k\cni\config\ovnkube-client-2026-10-31-00-00-00.pem`: "a certificate and its key\n",
		`C:\k\cni\config\ovnkube-client-current.pem`:             "a certificate and its key\n",
		`C:\Temp\network-conf.ps1`:                               "# of an older operator\n",
		`C:\Temp\hns.psm1`:                                       "# of an older operator\n",
		`C:\Temp\windows-defender-exclusion.ps1`:                 "# of an older operator\n",
		`C:\Temp\of-somebody-else.ps1`:                           "# not of an older operator\n",
		legacyAgentLog:                                           "I0101\n",
		`C:\var\log\hybrid-overlay\hybrid-overlay.log`:           "I0101\n",
	}
	maps.Copy(files, legacyPrograms(
		payload.Executable{Component: "containerd", File: "containerd.exe", Version: "v1.7.27"},
		payload.Executable{Component: "containerd", File: "containerd-shim-runhcs-v1.exe", Version: "v1.7.27"},
		payload.Executable{Component: "kubelet", File: "kubelet.exe", Version: "v1.32.3"},
		payload.Executable{Component: "kube-log-runner", File: "kube-log-runner.exe", Version: "v0.32.3"},
		payload.Executable{Component: "cni", File: "win-overlay.exe", Version: "v1.6.0"},
		payload.Executable{Component: "cni", File: "win-bridge.exe", Version: "v1.6.0"},
		payload.Executable{Component: "cni", File: "host-local.exe", Version: "v1.6.0"},
	))
	all := append(services, host.ServiceConfig{
		Name: "windows-instance-config-daemon", Description: "OpenShift managed windows-instance-config-daemon",
		StartType: host.StartAutomatic,
		CommandLine: `C:\k\windows-instance-config-daemon.exe controller --windows-service --log-dir C:\var\log\wicd --namespace ` + in.namespace +
			` --kubeconfig C:\k\wicd-kubeconfig --cert-dir C:\k\wicd-certs --cert-duration 1h --ca-bundle C:\k\ca-bundle.crt`,
	})
	return legacyLayout{
		services: all, files: files, links: map[string]string{`C:\var\log\wicd\windows-instance-config-daemon.exe.INFO`: legacyAgentLog},
		directories: []string{`C:\k\etc\kubernetes\manifests`, `C:\var\log\containerd`,
			`C:\var\log\kubelet`, `C:\var\log\kube-proxy`, `C:\var\log\csi-proxy`},
		variables: maps.Clone(legacyVariables), started: []string{"kube-proxy", "windows_exporter", "csi-proxy",
			"windows-instance-config-daemon"},
	}, nil
}

// legacyAgentLog is the log of WICD. klog creates an additional link without host, user and time.
const legacyAgentLog = `C:\var\log\wicd\windows-instance-config-daemon.exe.WIN.NT-AUTHORITY_SYSTEM.log.INFO.20260101-000000.4`

// legacyVariables are the machine variables that WICD sets when the cluster has a proxy.
var legacyVariables = map[string]string{"HTTP_PROXY": "http://proxy.example.com:3128", "NO_PROXY": ".svc;.cluster.local"}

// legacyPrograms are programs that the lab's hosts run, by their path.
func legacyPrograms(list ...payload.Executable) map[string]string {
	files := map[string]string{}
	for _, e := range list {
		e.Size = 64 << 10
		files[legacyDirectory(e.Component)+e.File] = string(e.Content())
	}
	return files
}

func legacyDirectory(component string) string {
	switch component {
	case "containerd":
		return `C:\k\containerd\`
	case "cni":
		return `C:\k\cni\`
	}
	return `C:\k\`
}

const (
	legacyKubeletConf = `{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1","rotateCertificates":true,"serverTLSBootstrap":true,
"authentication":{"x509":{"clientCAFile":"C:\\k\\kubelet-ca.crt"},"anonymous":{"enabled":false}},"clusterDomain":"cluster.local","cgroupsPerQOS":false,
"runtimeRequestTimeout":"10m0s","maxPods":250,"kubeAPIQPS":50,"kubeAPIBurst":100,"serializeImagePulls":false,"enableSystemLogHandler":true,
"enableSystemLogQuery":true,"featureGates":{"NodeLogQuery":true,"RotateKubeletServerCertificate":true},"containerLogMaxSize":"50Mi",
"enforceNodeAllocatable":["none"],"systemReserved":{"cpu":"500m","ephemeral-storage":"1Gi","memory":"2Gi"},
"containerRuntimeEndpoint":"npipe://./pipe/containerd-containerd","registerNode":true,
"registerWithTaints":[{"key":"os","value":"Windows","effect":"NoSchedule"}],"resolvConf":""}`

	legacyContainerdConf = `version = 2
root = "C:\\ProgramData\\containerd\\root"
state = "C:\\ProgramData\\containerd\\state"
[grpc]
  address = "\\\\.\\pipe\\containerd-containerd"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "mcr.microsoft.com/oss/kubernetes/pause:3.9"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "C:\\k\\cni"
    conf_dir = "C:\\k\\cni\\config"
`
)
