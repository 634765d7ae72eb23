package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// workerUnit returns kubelet.service of the workers, with the values that the machine config operator inserts
// for {{cloudProvider .}} and {{cloudConfigFlag .}}. Source: openshift/machine-config-operator,
// templates/worker/01-worker-kubelet.
func workerUnit(cloudProvider, cloudConfig string) string {
	return `[Unit]
Description=Kubernetes Kubelet
Requires=crio.service kubelet-auto-node-size.service

[Service]
Type=notify
EnvironmentFile=-/etc/kubernetes/kubelet-env

ExecStart=/usr/local/bin/kubenswrapper \
    /usr/bin/kubelet \
      --config=/etc/kubernetes/kubelet.conf \
      --bootstrap-kubeconfig=/etc/kubernetes/kubeconfig \
      --kubeconfig=/var/lib/kubelet/kubeconfig \
      --node-labels=node-role.kubernetes.io/worker,node.openshift.io/os_id=${ID} \
      --volume-plugin-dir=/etc/kubernetes/kubelet-plugins/volume/exec \
      --cloud-provider=` + cloudProvider + ` \
      ` + cloudConfig + ` \
      --hostname-override=${KUBELET_NODE_NAME} \
      --v=${KUBELET_LOG_LEVEL}

Restart=always
`
}

// newNodeSpec returns the NodeSpec for a cluster of the platform with the given worker unit.
func newNodeSpec(t *testing.T, platform configv1.PlatformType, unit string) nodespec.NodeSpec {
	t.Helper()
	f := newFixture(t)
	f.infrastructure.Status.PlatformStatus.Type = platform
	f.units["kubelet.service"] = unit
	facts, err := f.read(t)
	if err != nil {
		t.Fatal(err)
	}
	in := nodespec.Inputs{Kubernetes: "1.36",
		Cluster: facts, Instance: nodespec.Instance{Name: "winworker", NodeName: "winworker", NodeIP: "10.0.128.7"},
		Agent: newPayloadFile("wicd.exe"), OperatorVersion: "1.2.3",
	}
	for component, programs := range map[string][]string{
		"containerd": {"containerd.exe", "containerd-shim-runhcs-v1.exe"}, "kubelet": {"kubelet.exe"},
		"kube-proxy":      {"kube-proxy.exe"},
		"kube-log-runner": {"kube-log-runner.exe"}, "cni": {"win-overlay.exe", "host-local.exe", "win-bridge.exe"},
		"hybrid-overlay-node": {"hybrid-overlay-node.exe"}, "windows_exporter": {"windows_exporter.exe"},
		"csi-proxy":                {"csi-proxy.exe"},
		"ecr-credential-provider":  {"ecr-credential-provider.exe"},
		"azure-cloud-node-manager": {"azure-cloud-node-manager.exe"},
	} {
		c := nodespec.Component{Name: component, Version: "v1.0.0"}
		for _, name := range programs {
			c.Files = append(c.Files, newPayloadFile(name))
		}
		in.Payload = append(in.Payload, c)
	}
	spec, err := nodespec.Make(in)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func newPayloadFile(name string) nodespec.PayloadFile {
	return nodespec.PayloadFile{Name: name, SHA256: fmt.Sprintf("%064x", len(name)*1000+int(name[0])), Size: 1000}
}

// R-106, D-10: for volumes, a Windows node has the kubelet's cloud provider, as on the workers of the platform,
// and csi-proxy. The node plugins of CSI drivers mount and format disks through csi-proxy. The storage driver
// of a cloud is neither in the kubelet nor here.
func TestRead_CloudProviderFollowsWorkers(t *testing.T) {
	const azureConfig = "--cloud-config=/etc/kubernetes/cloud.conf"
	for platform, c := range map[configv1.PlatformType]struct{ unit, want string }{
		configv1.NonePlatformType:      {workerUnit("", ""), ""},
		configv1.BareMetalPlatformType: {workerUnit("", ""), ""},
		configv1.VSpherePlatformType:   {workerUnit("external", ""), "--cloud-provider=external"},
		configv1.NutanixPlatformType:   {workerUnit("external", ""), "--cloud-provider=external"},
		configv1.AWSPlatformType:       {workerUnit("external", ""), "--cloud-provider=external"},
		configv1.GCPPlatformType:       {workerUnit("external", ""), "--cloud-provider=external"},
		configv1.AzurePlatformType:     {workerUnit("external", azureConfig), "--cloud-provider=external"},
	} {
		t.Run(string(platform), func(t *testing.T) {
			words := map[string][]string{}
			for _, service := range newNodeSpec(t, platform, c.unit).Services {
				words[service.Name] = host.SplitCommandLine(service.CommandLine)
			}
			var cloud []string
			for _, word := range words[nodespec.ServiceKubelet] {
				if strings.HasPrefix(word, "--cloud-") || strings.HasPrefix(word, "--feature-gates") {
					cloud = append(cloud, word)
				}
			}
			if got := strings.Join(cloud, " "); got != c.want {
				t.Errorf("the kubelet's cloud provider is %q, want %q", got, c.want)
			}
			if proxy := words[nodespec.ServiceCSIProxy]; !slices.Contains(proxy, "-windows-service") ||
				!strings.HasSuffix(proxy[0], `\csi-proxy.exe`) {
				t.Errorf("csi-proxy runs as %q", proxy)
			}
		})
	}
}
