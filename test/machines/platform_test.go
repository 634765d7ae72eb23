package machines

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// build is a Windows version that a host runs.
type build struct {
	name, product, version string
	revision               int
}

var (
	server2016    = build{"win-2016", "Windows Server 2016 Datacenter", "10.0.14393", 7000}
	server2019    = build{"win-2019", "Windows Server 2019 Datacenter", "10.0.17763", 4737}
	server2019Old = build{"win-2019-old", "Windows Server 2019 Datacenter", "10.0.17763", 1457} // prescribed by the guide for OpenShift 4.6
	server20H2    = build{"win-20h2", "Windows Server, version 20H2", "10.0.19042", 1706}
	server2022Old = build{"win-2022-old", "Windows Server 2022 Datacenter", "10.0.20348", 600}
	server2022    = build{"win-2022", "Windows Server 2022 Datacenter", "10.0.20348", 681}
	server2025    = build{"win-2025", "Windows Server 2025 Datacenter", "10.0.26100", 6899}
)

func (b build) String() string { return b.version + "." + strconv.Itoa(b.revision) }

func (b build) hostOptions() testenv.HostOptions {
	system := fake.WindowsServer2022()
	system.Product, system.Version, system.Revision = b.product, b.version, b.revision
	return testenv.HostOptions{Name: b.name, System: &system}
}

// The tables of the guides, as literals. Each build listed for a platform becomes a node there, and each other
// build is refused before its host is changed. Windows Server 2025 is newer than the guides and accepted.
// D-8, L-28
func TestSupport_OnlyBuildsOfPlatformAccepted(t *testing.T) {
	//
	t.Run("AWS", func(t *testing.T) {
		checkSupportedBuilds(t, start(t, "AWS", optionsForAllBuilds()), "AWS", server2019, server2019Old, server2022, server2025)
	})
	//
	t.Run("Azure", func(t *testing.T) {
		checkSupportedBuilds(t, start(t, "Azure", optionsForAllBuilds()), "Azure", server2019, server2019Old, server2022, server2025)
	})
	//
	t.Run("vSphere", func(t *testing.T) {
		checkSupportedBuilds(t, start(t, "VSphere", optionsForAllBuilds()), "VSphere", server2022, server2025)
	})
	//
	t.Run("GCP", func(t *testing.T) {
		checkSupportedBuilds(t, start(t, "GCP", optionsForAllBuilds()), "GCP", server2022, server2025)
	})
	//
	t.Run("no platform", func(t *testing.T) {
		checkSupportedBuilds(t, start(t, "None", optionsForAllBuilds()), "None", server2019, server2019Old, server2022, server2025)
	})
	//
	t.Run("bare metal", func(t *testing.T) {
		options := optionsForAllBuilds()
		options.Cluster = parallelCluster(t, "None")
		setBareMetal(t, options.Cluster)
		checkSupportedBuilds(t, start(t, "None", options), "BareMetal", server2019, server2019Old, server2022, server2025)
	})
}

func allBuilds() []build {
	return []build{server2016, server2019, server2019Old, server20H2, server2022Old, server2022, server2025}
}

// optionsForAllBuilds returns a lab with a host of each build.
func optionsForAllBuilds() (options testenv.Options) {
	for _, b := range allBuilds() {
		options.Hosts = append(options.Hosts, b.hostOptions())
	}
	return options
}

// checkSupportedBuilds checks that the hosts of the accepted builds become nodes, and that all other hosts are
// refused because of their build. In the end, each host must be restored to its original state.
func checkSupportedBuilds(t *testing.T, l lab, platform string, accepted ...build) {
	before := map[build]fake.Snapshot{}
	for _, b := range allBuilds() {
		before[b] = l.Host(b.name).Machine().Snapshot()
	}
	l.startOperator()
	l.requireNoError(l.ListHosts(t.Context()))
	for _, b := range allBuilds() {
		if slices.Contains(accepted, b) {
			l.inTime(func(ctx context.Context) error { return l.WaitReady(ctx, b.name) })
			continue
		}
		var found *v1alpha1.WindowsInstance
		l.inTime(func(ctx context.Context) error {
			return l.WaitForInstance(ctx, l.Host(b.name), "to be refused", func(i *v1alpha1.WindowsInstance) bool {
				found = i
				return hasSummary(v1alpha1.ReasonWindowsVersionUnsupported)(i)
			})
		})
		l.checkUnsupported(found, v1alpha1.ReasonWindowsVersionUnsupported, b.String(), "platform "+platform)
		if diff := cmp.Diff(before[b], withoutAgent(l.Host(b.name).Machine().Snapshot())); diff != "" {
			t.Errorf("host %s was refused, and is not as it was (-before +after):\n%s", b.name, diff)
		}
	}
	l.requireNoError(l.DeleteInstances(t.Context()))
	for _, b := range allBuilds() {
		l.inTime(func(ctx context.Context) error { return l.WaitGone(ctx, b.name) })
		if diff := cmp.Diff(before[b], l.Host(b.name).Machine().Snapshot()); diff != "" {
			t.Errorf("host %s was given back, and is not as it was (-before +after):\n%s", b.name, diff)
		}
	}
}

// agentDirectories lists the agent's upload directory and its directory for inspections.
var agentDirectories = []string{`C:\ProgramData\ssh\wicd`, `C:\k\wicd`}

// withoutAgent excludes the agent that has inspected a host, in directories that only the operator uses.
func withoutAgent(s fake.Snapshot) fake.Snapshot {
	delete(s.Files, `C:\k`)
	for _, dir := range agentDirectories {
		for path := range s.Files {
			if path == dir || strings.HasPrefix(path, dir+`\`) {
				delete(s.Files, path)
			}
		}
	}
	return s
}

// setBareMetal sets the platform of a control plane without a platform until the test ends. Bare metal has no
// other difference.
func setBareMetal(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	admin, err := client.New(c.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	set := func(ctx context.Context, platform string) error {
		infrastructure := &unstructured.Unstructured{}
		infrastructure.SetGroupVersionKind(schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1",
			Kind: "Infrastructure"})
		infrastructure.SetName("cluster")
		patch := `{"status":{"platform":"` + platform + `","platformStatus":{"type":"` + platform + `"}}}`
		return admin.Status().Patch(ctx, infrastructure, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	if err := set(t.Context(), "BareMetal"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set(context.Background(), "None"); err != nil {
			t.Error(err)
		}
	})
}
