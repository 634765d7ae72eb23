// Package cni proves that what the operator writes for the network plugins is what plugins of this version take it for.
// The files are the golden ones of internal/nodespec, filled in as the agent does.
package cni

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/containernetworking/plugins/plugins/ipam/host-local/backend/allocator"
	"github.com/containernetworking/plugins/plugins/ipam/host-local/backend/disk"
)

// configurations returns the golden files of the pod network, filled in.
func configurations(t *testing.T) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("../../internal/nodespec/testdata/*/cni/config/cni.conf")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files; %v", err)
	}
	filled := map[string][]byte{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		filled[path] = []byte(strings.NewReplacer("${POD_SUBNET}", "10.132.0.0/23",
			"${POD_RANGE_START}", "10.132.0.3").Replace(string(data)))
	}
	return filled
}

//
func TestConfig_LoadedByRuntime(t *testing.T) {
	for path, data := range configurations(t) {
		network, err := libcni.ConfFromBytes(data)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if network.Network.Type != "win-overlay" || network.Network.Name != "OVNKubernetesHybridOverlayNetwork" {
			t.Errorf("%s: %+v", path, network.Network)
		}
		// The runtime asks the plugin for the version of the file.
		if !slices.Contains(version.All.SupportedVersions(), network.Network.CNIVersion) {
			t.Errorf("%s: version %q is none", path, network.Network.CNIVersion)
		}
		if _, err := libcni.ConfListFromConf(network); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestIPAM_PodsUseSubnetOfNode(t *testing.T) {
	for path, data := range configurations(t) {
		ipam, _, err := allocator.LoadIPAMConfig(data, "")
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if len(ipam.Ranges) != 1 || ipam.Ranges[0][0].Subnet.IP.String() != "10.132.0.0" {
			t.Errorf("%s: %+v", path, ipam.Ranges)
		}
		if !json.Valid(data) {
			t.Errorf("%s is no JSON", path)
		}
	}
}

// kube-proxy's endpoint has the address before: the plugin does not ask Windows for the addresses that are in use.
func TestIPAM_AddressOfKubeProxyNotAssigned(t *testing.T) {
	for path, data := range configurations(t) {
		ipam, _, err := allocator.LoadIPAMConfig(data, "")
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		store, err := disk.New(ipam.Name, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() }) // Windows deletes no file that is open
		got, err := allocator.NewIPAllocator(&ipam.Ranges[0], store, 0).Get("pod", "eth0", nil)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if got.Address.IP.String() != "10.132.0.3" || got.Gateway.String() != "10.132.0.1" {
			t.Errorf("%s: the first pod gets %s by %s", path, got.Address.IP, got.Gateway)
		}
	}
}
