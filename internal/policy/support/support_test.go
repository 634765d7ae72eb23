package support

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// newSupportedCluster returns a cluster without faults; on vSphere this includes a custom VXLAN port.
func newSupportedCluster(platform string) nodespec.Cluster {
	c := nodespec.Cluster{Platform: platform, Version: "5.0.3", Network: nodespec.ClusterNetwork{Type: "OVNKubernetes",
		HybridOverlay: true}}
	if platform == "VSphere" {
		c.Network.VXLANPort = ptr.To(int32(9898))
	}
	return c
}

// changeCluster returns the cluster with changes.
func changeCluster(c nodespec.Cluster, change func(*nodespec.Cluster)) nodespec.Cluster {
	change(&c)
	return c
}

func withVXLANPort(number int32) func(*nodespec.Cluster) {
	return func(c *nodespec.Cluster) { c.Network.VXLANPort = &number }
}

func withClusterNetwork(plugin string, hybrid bool) func(*nodespec.Cluster) {
	return func(c *nodespec.Cluster) { c.Network.Type, c.Network.HybridOverlay = plugin, hybrid }
}

func newWindowsInfo(product, version string, revision int) host.SystemInfo {
	return host.SystemInfo{Product: product, Edition: "ServerDatacenter", Version: version, Revision: revision,
		Architecture: "amd64"}
}

// expectation is the expected result of a decision. If check is empty, the decision must be "allowed".
type expectation struct {
	check, reason string
	messageParts  []string
}

func (e expectation) checkDecision(t *testing.T, decision policy.Decision) {
	t.Helper()
	if decision.Check != e.check || decision.Reason != e.reason || decision.Allowed != (e.check == "") ||
		decision.Message == "" {
		t.Fatalf("decision is %+v, want check %q, reason %q", decision, e.check, e.reason)
	}
	for _, part := range e.messageParts {
		if !strings.Contains(decision.Message, part) {
			t.Errorf("message %q does not say %q", decision.Message, part)
		}
	}
	sentences := strings.SplitAfter(decision.Message, ". ")
	for i, sentence := range sentences {
		if strings.Contains(strings.Join(sentences[i+1:], ""), strings.TrimSpace(sentence)) {
			t.Errorf("message %q repeats %q", decision.Message, sentence)
		}
	}
}

func TestSupportCluster(t *testing.T) {
	const version, platform, net = v1alpha1.ReasonClusterVersionUnsupported, v1alpha1.ReasonPlatformUnsupported,
		v1alpha1.ReasonNetworkUnsupported
	at := func(version string) nodespec.Cluster {
		return changeCluster(newSupportedCluster("AWS"), func(c *nodespec.Cluster) { c.Version = version })
	}
	for name, c := range map[string]struct {
		cluster nodespec.Cluster
		expectation
	}{
		//
		"OVN-Kubernetes with hybrid networking": {newSupportedCluster("AWS"), expectation{"", "", []string{"5.0.3", "AWS"}}},
		// R-109, L-06
		"OpenShift SDN": {changeCluster(newSupportedCluster("AWS"), withClusterNetwork("OpenShiftSDN", false)), expectation{"NetworkTypeUnsupported", net,
			[]string{"OpenShiftSDN", "OVN-Kubernetes"}}},
		"a network of no name": {changeCluster(newSupportedCluster("AWS"), withClusterNetwork("", true)), expectation{"NetworkTypeUnsupported", net, nil}},
		// R-109, L-06
		"OVN-Kubernetes without hybrid networking": {changeCluster(newSupportedCluster("AWS"), withClusterNetwork("OVNKubernetes", false)),
			expectation{"HybridOverlayDisabled", net, []string{"hybridClusterNetwork", "oc patch networks.operator.openshift.io cluster ",
				`"hybridOverlayConfig":{"hybridClusterNetwork":[{"cidr":"10.132.0.0/14","hostPrefix":23}]}}}}}'`}}},
		//
		"vSphere without hybrid networking": {changeCluster(newSupportedCluster("VSphere"), withClusterNetwork("OVNKubernetes", false)),
			expectation{"HybridOverlayDisabled", net, []string{`"hostPrefix":23}],"hybridOverlayVXLANPort":9898}}}}}'`}}},
		//
		"vSphere without a custom VXLAN port": {changeCluster(newSupportedCluster("VSphere"), func(c *nodespec.Cluster) {
			c.Network.VXLANPort, c.Network.HybridClusterNetworks = nil, []string{"10.200.0.0/14"}
		}),
			expectation{"CustomVXLANPortMissing", net, []string{"VSphere", "hybridOverlayVXLANPort", "4789", `"hybridOverlayConfig":null}}}}'`,
				`[{"cidr":"10.200.0.0/14","hostPrefix":23}],"hybridOverlayVXLANPort":9898}}}}}'`}}},
		//
		"vSphere with one": {newSupportedCluster("VSphere"), expectation{}},
		"AWS with one":     {changeCluster(newSupportedCluster("AWS"), withVXLANPort(9898)), expectation{}},
		"a platform that nobody knows": {newSupportedCluster("IBMCloud"), expectation{"PlatformUnsupported", platform,
			[]string{`"IBMCloud"`, "AWS", "Nutanix", "None"}}},
		"no platform told": {newSupportedCluster(""), expectation{"PlatformUnsupported", platform, nil}},
		//
		"the last version below the floor": {at("4.6.7"), expectation{"ClusterTooOld", version, []string{"4.6.7", "4.6.8"}}},
		"a candidate of the floor":         {at("4.6.8-rc.1"), expectation{"ClusterTooOld", version, []string{"4.6.8"}}},
		"a cluster of OpenShift 3":         {at("3.11.0"), expectation{"ClusterTooOld", version, []string{"3.11.0"}}},
		"an invalid version":               {at("latest"), expectation{"ClusterTooOld", version, []string{`"latest"`}}},
		"no version":                       {at(""), expectation{"ClusterTooOld", version, nil}},
		//
		"the first version above the floor, which other releases serve": {at("4.6.8"), expectation{"ClusterVersionUnsupported", version,
			[]string{"4.6.8", "4.20", "5.0", "12", "Upgrade the cluster"}}},
		//
		"the minor version before the oldest": {at("4.19.30"), expectation{"ClusterVersionUnsupported", version,
			[]string{"4.19.30", "OpenShift 4.20, 4.21", "Upgrade the cluster"}}},
		"the oldest minor version": {at("4.20.0"), expectation{}},
		"a preview":                {at("5.1.0"), expectation{}},
		// a kubelet may be three minor versions older than the API server.
		"three minor versions after the newest": {at("5.4.1"), expectation{}},
		"four minor versions after the newest": {at("5.5.0"), expectation{"ClusterVersionUnsupported", version,
			[]string{"5.5.0", "4.20, 4.21", "Upgrade the operator"}}},
		"a candidate of it": {at("5.5.0-ec.2"), expectation{"ClusterVersionUnsupported", version,
			[]string{"Upgrade the operator"}}},
		"the major version after": {at("6.0.0"), expectation{"ClusterVersionUnsupported", version,
			[]string{"Upgrade the operator"}}},
		"a minor version that does not exist":    {at("4.24.0"), expectation{"ClusterVersionUnsupported", version, []string{"4.24.0"}}},
		"the first release of the minor version": {at("5.0.0"), expectation{}},
		"a candidate of a first release":         {at("5.0.0-rc.4"), expectation{}},
		"a nightly build of it":                  {at("5.0.0-0.nightly-2026-07-01-081500"), expectation{}},
		"a release of OKD":                       {at("5.0.0-okd-scos.3"), expectation{}},
		//
		"a late patch of it": {at("5.0.99"), expectation{}},
	} {
		t.Run(name, func(t *testing.T) { c.checkDecision(t, CurrentLine().SupportCluster(c.cluster)) })
	}
}

// the lines of the guides, each with a supported cluster and an unsupported one.
func TestSupportCluster_LineServesOneMinorVersion(t *testing.T) {
	guides := []struct {
		operator      int
		serves, other string
	}{
		{1, "4.6.8", "4.10.0"}, {2, "4.7.0", "4.6.8"}, {3, "4.8.1", "4.12.0"}, {7, "4.12.3", "4.11.0"}, {12, "5.0.0", "5.4.0"},
	}
	for _, g := range guides {
		line := newLine(g.operator, g.serves)
		t.Run(g.serves, func(t *testing.T) {
			c := newSupportedCluster("AWS")
			c.Version = g.serves
			expectation{}.checkDecision(t, line.SupportCluster(c))
			c.Version = g.other
			expectation{"ClusterVersionUnsupported", v1alpha1.ReasonClusterVersionUnsupported,
				[]string{g.other, line.Newest().OpenShift}}.checkDecision(t, line.SupportCluster(c))
		})
	}
	t.Run("this release is of line 12, for OpenShift 4.20 to 5.1", func(t *testing.T) {
		if line := CurrentLine(); line.Operator != 12 || line.Oldest().OpenShift != "4.20" || line.Newest().OpenShift != "5.1" {
			t.Errorf("it is %+v", line)
		}
	})
}

// newLine returns a line for the minor version of a version of OpenShift, from that patch version on.
func newLine(operator int, minVersion string) ReleaseLine {
	v := version.MustParseSemantic(minVersion)
	return ReleaseLine{Operator: operator, Minors: []Minor{
		{OpenShift: fmt.Sprintf("%d.%d", v.Major(), v.Minor()), Kubernetes: "1.99", MinPatch: v.Patch()}}}
}

// the guide's case, 7.1.0 on OpenShift 4.12, and the case of a future release.
func TestSupportCluster_OldPatchNamesRequiredPatch(t *testing.T) {
	guide, next := newLine(7, "4.12.3"), newLine(12, "5.0.3")
	const version, reason = "ClusterVersionUnsupported", v1alpha1.ReasonClusterVersionUnsupported
	for name, c := range map[string]struct {
		cluster string
		line    ReleaseLine
		expectation
	}{
		"the patch before it": {"4.12.2", guide, expectation{"ClusterPatchTooOld", reason,
			[]string{"OpenShift 4.12.2", "OpenShift 4.12.3", "release line 7", "Upgrade the cluster."}}},
		"that very patch":  {"4.12.3", guide, expectation{}},
		"a patch after it": {"4.12.10", guide, expectation{}},
		"an earlier minor version": {"4.11.30", guide,
			expectation{version, reason, []string{"4.11.30", "4.12"}}},
		"a later minor version": {"4.16.5", guide,
			expectation{version, reason, []string{"4.16.5", "4.12"}}},
		"a later minor version, within the limit": {"4.13.0", guide, expectation{}},
		"the first patch, two short": {"5.0.0", next, expectation{"ClusterPatchTooOld", reason,
			[]string{"OpenShift 5.0.0", "OpenShift 5.0.3"}}},
		"a patch that is one short": {"5.0.2", next, expectation{"ClusterPatchTooOld", reason,
			[]string{"OpenShift 5.0.2", "OpenShift 5.0.3"}}},
		"the patch":             {"5.0.3", next, expectation{}},
		"a patch of two digits": {"5.0.10", next, expectation{}},
		"a candidate for the patch before it": {"5.0.2-rc.1", next, expectation{"ClusterPatchTooOld", reason,
			[]string{"5.0.2-rc.1", "5.0.3"}}},
		"a candidate for the patch": {"5.0.3-rc.1", next, expectation{}},
		"a nightly build, which is no part of it": {"5.0.0-0.nightly-2026-07-01-081500", next,
			expectation{"ClusterPatchTooOld", reason, []string{"5.0.0-0.nightly", "5.0.3"}}},
		"a release of OKD, which has no patch version":     {"5.0.0-okd-scos.3", next, expectation{}},
		"a nightly build of OKD":                           {"5.0.0-0.okd-scos-2026-07-01-081500", next, expectation{}},
		"a release of OKD for the minor version before it": {"4.22.0-okd-scos.7", next, expectation{version, reason, []string{"4.22.0-okd-scos.7", "5.0"}}},
		"a much later minor version":                       {"5.4.0", next, expectation{version, reason, []string{"5.4.0", "5.0"}}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newSupportedCluster("AWS")
			cluster.Version = c.cluster
			c.checkDecision(t, c.line.SupportCluster(cluster))
			c.checkDecision(t, c.line.SupportHost(newWindowsInfo("Windows Server 2022 Datacenter", "10.0.20348", 681), cluster))
		})
	}
}

func TestSupportMachine(t *testing.T) {
	const fifteen, sixteen = "winworker-abcde", "winworker0-abcde"
	long, noMachines := v1alpha1.ReasonMachineNameTooLong, v1alpha1.ReasonPlatformUnsupported
	for name, c := range map[string]struct {
		platform, machine string
		expectation
	}{
		"a name of 15 characters on Azure": {"Azure", fifteen, expectation{}},
		// R-051, L-19
		"a name of 16 characters on Azure": {"Azure", sixteen, expectation{"MachineNameTooLong", long,
			[]string{sixteen, "16 characters", "15 at most", "9 characters", "Azure"}}},
		"a name of 15 characters on vSphere": {"VSphere", fifteen, expectation{}},
		// R-051, L-19
		"a name of 16 characters on vSphere": {"VSphere", sixteen, expectation{"MachineNameTooLong", long,
			[]string{sixteen, "16 characters", "VSphere"}}},
		//
		"a long name on AWS":          {"AWS", "lab-x7k2p-windows-worker-us-east-1a-abcde", expectation{}},
		"a long name on Google Cloud": {"GCP", "lab-x7k2p-windows-worker-a-abcde", expectation{}},
		"a long name on Nutanix":      {"Nutanix", "lab-x7k2p-windows-worker-a-abcde", expectation{}},
		// R-052, L-26
		"a Machine without a platform": {"None", "winworker-abcde", expectation{"MachinesUnsupported", noMachines,
			[]string{"None", "windows-instances"}}},
		// R-052, L-26
		"a Machine on bare metal": {"BareMetal", "winworker-abcde", expectation{"MachinesUnsupported", noMachines,
			[]string{"BareMetal", "windows-instances"}}},
		"a Machine on an unknown platform": {"IBMCloud", "winworker-abcde", expectation{"MachinesUnsupported", noMachines,
			[]string{"IBMCloud"}}},
	} {
		t.Run(name, func(t *testing.T) { c.checkDecision(t, Machine(newSupportedCluster(c.platform), c.machine)) })
	}
	t.Run("the longest name of a MachineSet gives a name that fits", func(t *testing.T) {
		if len(fifteen) != 9+MachineSuffix || len(sixteen) != 16 {
			t.Errorf("%d and %d characters", len(fifteen), len(sixteen))
		}
	})
}

func TestSupportHost(t *testing.T) {
	server2022 := newWindowsInfo("Windows Server 2022 Datacenter", "10.0.20348", 681)
	build, edition := v1alpha1.ReasonWindowsVersionUnsupported, func(edition, version string) host.SystemInfo {
		return host.SystemInfo{Product: "Windows", Edition: edition, Version: version, Revision: 1742, Architecture: "amd64"}
	}
	for name, c := range map[string]struct {
		system  host.SystemInfo
		cluster nodespec.Cluster
		expectation
	}{
		"a supported host": {server2022, newSupportedCluster("None"), expectation{"", "", []string{"10.0.20348.681", "None"}}},
		"a version to come": {newWindowsInfo("Windows Server 2028", "10.0.30000", 1), newSupportedCluster("None"),
			expectation{"WindowsUnsupported", build, []string{"Windows Server 2028"}}},
		"a host that tells nothing": {host.SystemInfo{Architecture: "amd64", Edition: "Server"}, newSupportedCluster("None"),
			expectation{"WindowsUnsupported", build, nil}},
		"Windows 11, which has the build of Windows Server 2025": {edition("Professional", "10.0.26100"), newSupportedCluster("None"),
			expectation{"EditionUnsupported", build, []string{"Professional", "10.0.26100.1742"}}},
		"Windows 10, which has the build of Windows Server 2019": {edition("EnterpriseS", "10.0.17763"), newSupportedCluster("AWS"),
			expectation{"EditionUnsupported", build, []string{"AWS"}}},
		"another architecture": {host.SystemInfo{Edition: "ServerDatacenter", Version: "10.0.26100", Architecture: "arm64"},
			newSupportedCluster("None"),
			expectation{"ArchitectureUnsupported", v1alpha1.ReasonArchitectureUnsupported, []string{"arm64"}}},
		//
		"a host of a cluster that is not supported": {newWindowsInfo("Windows Server 2016", "10.0.14393", 1),
			changeCluster(newSupportedCluster("None"), withClusterNetwork("OpenShiftSDN", false)),
			expectation{"NetworkTypeUnsupported", v1alpha1.ReasonNetworkUnsupported, []string{"OpenShiftSDN"}}},
		"a host on vSphere without a custom VXLAN port": {server2022, changeCluster(newSupportedCluster("VSphere"), func(c *nodespec.Cluster) {
			c.Network.VXLANPort = nil
		}),
			expectation{"CustomVXLANPortMissing", v1alpha1.ReasonNetworkUnsupported, nil}},
	} {
		t.Run(name, func(t *testing.T) { c.checkDecision(t, CurrentLine().SupportHost(c.system, c.cluster)) })
	}
}

// D-8
func TestAdvise_OldBuildsNameFix(t *testing.T) {
	for build, want := range map[string]string{
		"10.0.17763.1": "direct server return", "10.0.17763.1457": "KB4586793", "10.0.17763.1576": "17763.1577", "10.0.17763.1577": "",
		"10.0.20348.2581": "", "10.0.20348.2582": "KB5044281", "10.0.20348.2700": "20348.2762", "10.0.20348.2762": "",
		"10.0.20348.681": "", "10.0.26100.6899": "", "10.0.17763.2600": "", "": "", "10": "", "10.0.20348.x": "",
	} {
		got := Advise(build)
		if got == "" != (want == "") || !strings.Contains(got, want) {
			t.Errorf("of build %s it says %q, want %q", build, got, want)
		}
	}
}
