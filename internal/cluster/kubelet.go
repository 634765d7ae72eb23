package cluster

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// workerKubelet contains the fields of the workers' KubeletConfiguration that Windows nodes use.
type workerKubelet struct {
	Kind          string   `json:"kind"`
	ClusterDNS    []string `json:"clusterDNS"`
	ClusterDomain string   `json:"clusterDomain"`
}

func readWorkerKubelet(worker workerIgnition, id string, facts *nodespec.Cluster) error {
	fault := func(message string) error {
		return &Error{Object: id, Field: "spec.config, file " + kubeletConfigPath, Message: message}
	}
	content, found, err := worker.fileContent(kubeletConfigPath)
	switch {
	case err != nil:
		return fault(err.Error())
	case !found:
		return fault("the file does not exist. The machine config operator writes the workers' KubeletConfiguration to it.")
	}
	var kubelet workerKubelet
	if err := yaml.Unmarshal(content, &kubelet); err != nil {
		return fault("it is not a KubeletConfiguration in YAML: " + err.Error())
	}
	if kubelet.Kind != "KubeletConfiguration" {
		return fault(fmt.Sprintf("its kind is %q, not KubeletConfiguration.", kubelet.Kind))
	}
	if len(kubelet.ClusterDNS) == 0 {
		return fault("clusterDNS is empty: pods on Windows nodes could not resolve any names. Check the KubeletConfig objects for workers.")
	}
	var dns []string
	for _, text := range kubelet.ClusterDNS {
		address, err := netip.ParseAddr(text)
		if err != nil {
			return fault(fmt.Sprintf("clusterDNS contains %q, which is not an IP address.", text))
		}
		if address.Is4() {
			dns = append(dns, text)
		}
	}
	if len(dns) == 0 {
		return fault(fmt.Sprintf("clusterDNS contains only IPv6 addresses (%s), and pods on Windows nodes have no IPv6: they could not resolve any names. "+
			"OpenShift takes the address from the first service network, which the installation determines: Windows nodes need a cluster whose first service network is IPv4.",
			formatExcerpt(strings.Join(kubelet.ClusterDNS, ", "))))
	}
	if problems := validation.IsDNS1123Subdomain(kubelet.ClusterDomain); len(problems) > 0 {
		return fault(fmt.Sprintf("clusterDomain %q is not a domain name: %s.", kubelet.ClusterDomain, problems[0]))
	}
	settings, err := kubeletSettings(content)
	if err != nil {
		return fault(err.Error() + ". Check the KubeletConfig objects for workers.")
	}
	facts.Kubelet = nodespec.WorkerKubelet{
		ClusterDNS: dns, ClusterDomain: kubelet.ClusterDomain, Settings: settings,
		CloudProvider: cloudProvider(worker.units["kubelet.service"]),
	}
	return nil
}

var cloudProviderFlag = regexp.MustCompile(`--cloud-provider=([a-z]*)`)

// cloudProvider returns the cloud provider of the workers' kubelets, which is set only on their command line.
func cloudProvider(unit string) string {
	if match := cloudProviderFlag.FindStringSubmatch(unit); match != nil {
		return match[1]
	}
	return ""
}
