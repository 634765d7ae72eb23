package support

import (
	"fmt"
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// The builds named in the guides, and Windows Server 2025, which was released later.
var builds = []struct {
	product, version string
	revision         int
}{
	{"Windows Server 2016", "10.0.14393", 7000},
	{"Windows Server 2019", "10.0.17763", 1},
	{"Windows Server 2019 at the old cap", "10.0.17763", 1457},
	{"Windows Server 2019 above the old cap", "10.0.17763", 1458},
	{"Windows Server 2019 one update before KB4586793", "10.0.17763", 1576},
	{"Windows Server 2019 with KB4586793", "10.0.17763", 1577},
	{"Windows Server 2019 with every update", "10.0.17763", 99999},
	{"Windows Server, version 2004", "10.0.19041", 1},
	{"Windows Server, version 20H2", "10.0.19042", 1},
	{"Windows Server 2022 as it was released", "10.0.20348", 169},
	{"Windows Server 2022 of early 2022", "10.0.20348", 600},
	{"Windows Server 2022 one update too old", "10.0.20348", 680},
	{"Windows Server 2022 with KB5012637", "10.0.20348", 681},
	{"Windows Server, version 23H2", "10.0.25398", 1},
	{"Windows Server 2025 as it was released", "10.0.26100", 1742},
	{"Windows Server 2025 one update too old", "10.0.26100", 6898},
	{"Windows Server 2025 with KB5066835", "10.0.26100", 6899},
}

// Results, in the order of builds.
const (
	yes    = ""
	never  = "WindowsUnsupported"
	update = "WindowsUpdateMissing"
	vxlan  = "VXLANPortUnsupported"
)

// The rows are the tables of the guides, written by hand and not derived from Platforms().
// D-2, D-8, L-07, L-28
func TestSupportMatrix_MatchesGuides(t *testing.T) {
	both := [...]string{never, yes, yes, yes, yes, yes, yes, never, never, update, update, update, yes,
		never, update, update, yes}
	only2022 := [...]string{never, never, never, never, never, never, never, never, never, update, update, update, yes,
		never, update, update, yes}
	customPort := [...]string{never, vxlan, vxlan, vxlan, vxlan, vxlan, vxlan, never, never, update, update, update,
		yes, never, update, update, yes}
	for _, row := range []struct {
		platform   string
		customPort bool
		answers    [17]string
	}{
		// The standard port.
		{"AWS", false, both},
		{"Azure", false, both},
		{"GCP", false, only2022},
		{"Nutanix", false, only2022}, // later guides
		{"None", false, both},
		{"BareMetal", false, both},
		// A custom port.
		{"AWS", true, customPort},
		{"Azure", true, customPort},
		{"GCP", true, only2022},
		{"VSphere", true, only2022}, // an earlier check refuses the standard port
		{"Nutanix", true, only2022},
		{"None", true, customPort},
		{"BareMetal", true, customPort},
	} {
		cluster := newSupportedCluster(row.platform)
		where := row.platform
		if row.customPort {
			cluster, where = changeCluster(cluster, withVXLANPort(9898)), where+" with a custom VXLAN port"
		}
		for i, b := range builds {
			want, build := expectation{}, fmt.Sprintf("%s.%d", b.version, b.revision)
			switch row.answers[i] {
			case never, update:
				want = expectation{row.answers[i], v1alpha1.ReasonWindowsVersionUnsupported,
					[]string{build, "platform " + row.platform}}
			case vxlan:
				want = expectation{vxlan, v1alpha1.ReasonVXLANPortUnsupported, []string{build, "platform " + row.platform, "9898",
					"Windows Server 2022"}}
			}
			t.Run(b.product+" on "+where, func(t *testing.T) {
				want.checkDecision(t, CurrentLine().SupportHost(newWindowsInfo(b.product, b.version, b.revision), cluster))
			})
		}
	}
}

// User-provided hosts can be nodes on each platform, regardless of the origin of the infrastructure, which the
// cluster does not reveal. Machines are not supported everywhere.
func TestPlatforms(t *testing.T) {
	for _, row := range []struct {
		platform        string
		known, machines bool
		longest         int // characters of a Machine's name; 0: any
		needsCustomPort bool
	}{
		{"AWS", true, true, 0, false},
		{"Azure", true, true, 15, false},
		{"GCP", true, true, 0, false},
		{"VSphere", true, true, 15, true},
		{"Nutanix", true, true, 0, false},
		{"None", true, false, 0, false},
		{"BareMetal", true, false, 0, false},
		{"OpenStack", false, false, 0, false},
		{"External", false, false, 0, false},
	} {
		t.Run(row.platform, func(t *testing.T) {
			cluster := newSupportedCluster(row.platform)
			if got := CurrentLine().SupportCluster(cluster); got.Allowed != row.known {
				t.Errorf("the cluster: %+v", got)
			}
			if got := CurrentLine().SupportHost(newWindowsInfo("Windows Server 2022", "10.0.20348", 681),
				cluster); got.Allowed != row.known {
				t.Errorf("a host that is brought: %+v", got)
			}
			if got := Machine(cluster, "win-abcde"); got.Allowed != row.machines {
				t.Errorf("a Machine: %+v", got)
			}
			if got := Machine(cluster, "a-name-that-is-too-long-abcde"); got.Allowed != (row.machines && row.longest == 0) {
				t.Errorf("a Machine with a long name: %+v", got)
			}
			cluster.Network.VXLANPort = nil
			if got := CurrentLine().SupportCluster(cluster); got.Allowed != (row.known && !row.needsCustomPort) {
				t.Errorf("on the usual VXLAN port: %+v", got)
			}
		})
	}
	t.Run("a test has a row for each platform", func(t *testing.T) {
		if n := len(Platforms()); n != 7 {
			t.Errorf("there are %d", n)
		}
	})
}
