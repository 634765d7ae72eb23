package policy

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// the builds of the guides' tables, on the usual VXLAN port and on one of the cluster's own.
func TestWindowsBuilds(t *testing.T) {
	const never = "WindowsVersion"
	for _, c := range []struct {
		name                   string
		build, revision        int
		usualPort, anotherPort string // the check that refuses; empty: supported
	}{
		{"Windows Server 2016", 14393, 7000, never, never},
		{"Windows Server 2019", 17763, 1, "", "VXLANPort"},
		{"Windows Server 2019 with every update", 17763, 99999, "", "VXLANPort"},
		{"Windows Server, version 2004", 19041, 1, never, never},
		{"Windows Server, version 20H2", 19042, 1, never, never},
		{"Windows Server 2022 as it was released", 20348, 169, "WindowsUpdate", "WindowsUpdate"},
		{"Windows Server 2022 of early 2022", 20348, 600, "WindowsUpdate", "WindowsUpdate"},
		{"Windows Server 2022 one update too old", 20348, 680, "WindowsUpdate", "WindowsUpdate"},
		{"Windows Server 2022 with the update that is needed", 20348, 681, "", ""},
		{"Windows Server, version 23H2", 25398, 1, never, never},
		{"Windows Server 2025", 26100, 1742, "", ""},
	} {
		system := host.SystemInfo{
			Product: c.name, Edition: "ServerDatacenter", Architecture: "amd64",
			Version: fmt.Sprintf("10.0.%d", c.build), Revision: c.revision,
		}
		cluster := nodespec.Cluster{Platform: "VSphere", Network: nodespec.ClusterNetwork{Type: "OVNKubernetes", HybridOverlay: true}}
		t.Run(c.name+" on the usual port", func(t *testing.T) { expectSupport(t, system, cluster, c.usualPort) })
		cluster.Network.VXLANPort = ptr.To(int32(9898))
		t.Run(c.name+" on another port", func(t *testing.T) { expectSupport(t, system, cluster, c.anotherPort) })
	}
}

func expectSupport(t *testing.T, system host.SystemInfo, cluster nodespec.Cluster, check string) {
	t.Helper()
	decision := SupportHost(system, cluster)
	if decision.Allowed != (check == "") || decision.Check != check {
		t.Fatalf("decision is %+v, want check %q", decision, check)
	}
	build := fmt.Sprintf("%s.%d", system.Version, system.Revision)
	if check == "WindowsVersion" && (!strings.Contains(decision.Message, build) || !strings.Contains(decision.Message, cluster.Platform)) {
		t.Errorf("message %q does not name build %s and platform %s", decision.Message, build, cluster.Platform)
	}
}
