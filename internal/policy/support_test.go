package policy

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

//
func TestSupportHost(t *testing.T) {
	windows := func(product, version string, revision int) host.SystemInfo {
		return host.SystemInfo{Product: product, Edition: "ServerDatacenter", Version: version, Revision: revision, Architecture: "amd64"}
	}
	server2019 := windows("Windows Server 2019 Datacenter", "10.0.17763", 1)
	server2022 := windows("Windows Server 2022 Datacenter", "10.0.20348", 681)
	server2025 := windows("Windows Server 2025 Datacenter", "10.0.26100", 1742)
	ovn := nodespec.Cluster{Platform: "None", Network: nodespec.ClusterNetwork{Type: "OVNKubernetes", HybridOverlay: true}}
	customPort := ovn
	customPort.Network.VXLANPort = ptr.To(int32(9898))

	for name, c := range map[string]struct {
		system  host.SystemInfo
		cluster nodespec.Cluster
		check   string // empty: supported
		says    []string
	}{
		"Windows Server 2019":                                    {server2019, ovn, "", nil},
		"Windows Server 2022 with the update that is needed":     {server2022, ovn, "", nil},
		"Windows Server 2025":                                    {server2025, ovn, "", nil},
		"Windows Server 2022 with a custom VXLAN port":           {server2022, customPort, "", nil},
		"Windows Server 2019 cannot use a custom VXLAN port":     {server2019, customPort, "VXLANPort", []string{"9898", "Windows Server 2019"}},
		"Windows Server 2022 before the update that is needed":   {windows("Windows Server 2022 Datacenter", "10.0.20348", 680), ovn, "WindowsUpdate", []string{"10.0.20348.680", "10.0.20348.681"}},
		"Windows Server 2016":                                    {windows("Windows Server 2016 Datacenter", "10.0.14393", 1), ovn, "WindowsVersion", []string{"10.0.14393.1", "None", "10.0.20348.681"}},
		"a version to come":                                      {windows("Windows Server 2028", "10.0.30000", 1), ovn, "WindowsVersion", []string{"Windows Server 2028"}},
		"a host that tells nothing":                              {host.SystemInfo{Architecture: "amd64", Edition: "Server"}, ovn, "WindowsVersion", nil},
		"Windows 11, whose build is that of Windows Server 2025": {host.SystemInfo{Product: "Windows 11 Pro", Edition: "Professional", Version: "10.0.26100", Revision: 1742, Architecture: "amd64"}, ovn, "Edition", []string{"Windows 11 Pro"}},
		"another architecture":                                   {host.SystemInfo{Edition: "ServerDatacenter", Version: "10.0.26100", Architecture: "arm64"}, ovn, "Architecture", []string{"arm64"}},
		"OpenShift SDN":                                          {server2022, nodespec.Cluster{Network: nodespec.ClusterNetwork{Type: "OpenShiftSDN"}}, "NetworkType", []string{"OpenShiftSDN", "OVN-Kubernetes"}},
		"OVN-Kubernetes without hybrid networking":               {server2022, nodespec.Cluster{Network: nodespec.ClusterNetwork{Type: "OVNKubernetes"}}, "HybridOverlay", []string{"hybridClusterNetwork"}},
	} {
		t.Run(name, func(t *testing.T) {
			decision := SupportHost(c.system, c.cluster)
			if decision.Check != c.check || decision.Allowed != (c.check == "") || decision.Message == "" {
				t.Errorf("decision is %+v, want check %q", decision, c.check)
			}
			if !decision.Allowed && decision.Reason == "" {
				t.Error("the refusal has no reason")
			}
			for _, part := range c.says {
				if !strings.Contains(decision.Message, part) {
					t.Errorf("message %q does not say %q", decision.Message, part)
				}
			}
		})
	}
}
