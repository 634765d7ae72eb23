package upgrade

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/windows-machine-config/wmco/internal/payload"
	labpayload "github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// Consecutive releases of the operator.
const (
	initial         = "initial"
	patch           = "patch"     // a patch release: another kubelet and agent, with few changed bytes
	unchanged       = "unchanged" // only another version of the operator
	patch2          = "patch2"    // the next patch release
	exits           = "exits"     // the kubelet exits right after its start
	unhealthy       = "unhealthy" // the kubelet runs and never reports healthy
	notReady        = "not-ready" // the kubelet is healthy, and the Node is not Ready
	repaired        = "mended"    // the release after these three
	otherComponents = "others"    // kubelet and agent of patch2, with other versions of all other components
)

// sizePercent is the size of the payloads relative to the lab's usual size. The share of the agent is realistic: 10
// of 308 MB.
const (
	sizePercent = 40
	agentBytes  = 18200 << 10 * sizePercent / 100 / 30
)

// generatedReleases contains all releases in a directory.
type generatedReleases struct {
	dir    string
	byName map[string]generatedRelease
}

type generatedRelease struct {
	testenv.Release
	kubelet string
	payload *payload.Payload
}

// releases are generated at their first use.
var releases struct {
	once     sync.Once
	releases *generatedReleases
	err      error
}

// otherVersions contains the versions of all components on all platforms except kubelet and agent, each different
// from the previous releases.
var otherVersions = map[string]string{
	"containerd": "v2.4.3", "kube-proxy": "v1.36.5", "kube-log-runner": "v0.36.5", "cni": "v1.9.2",
	"hybrid-overlay-node": "v1.0.1",
	"windows_exporter":    "v0.31.9", "csi-proxy": "v1.3.1",
}

// generateReleases generates all releases.
func generateReleases() (*generatedReleases, error) {
	dir, err := os.MkdirTemp("", "wmco-test-releases-")
	if err != nil {
		return nil, err
	}
	releases := &generatedReleases{dir: dir, byName: map[string]generatedRelease{}}
	var earlier []*payload.Payload
	for _, r := range []struct {
		name, version, kubelet, agent string
		defect                        labpayload.Defect
		versions                      map[string]string
	}{
		{name: initial, version: "12.0.0", kubelet: "v1.36.3", agent: "12.0.0"},
		{name: patch, version: "12.0.1", kubelet: "v1.36.4", agent: "12.0.1"},
		{name: unchanged, version: "12.0.2", kubelet: "v1.36.4", agent: "12.0.1"},
		{name: patch2, version: "12.0.3", kubelet: "v1.36.5", agent: "12.0.3"},
		{name: exits, version: "12.1.0", kubelet: "v1.37.0", agent: "12.0.3", defect: labpayload.DefectExits},
		{name: unhealthy, version: "12.1.1", kubelet: "v1.37.1", agent: "12.0.3", defect: labpayload.DefectUnhealthy},
		{name: notReady, version: "12.1.2", kubelet: "v1.37.2", agent: "12.0.3", defect: labpayload.DefectNotReady},
		{name: repaired, version: "12.1.3", kubelet: "v1.37.3", agent: "12.0.3"},
		{name: otherComponents, version: "12.0.4", kubelet: "v1.36.5", agent: "12.0.3", versions: otherVersions},
	} {
		versions := map[string]string{"kubelet": r.kubelet, payload.ComponentAgent: r.agent}
		maps.Copy(versions, r.versions)
		release := testenv.Release{Version: r.version, PayloadDirectory: filepath.Join(dir, r.name)}
		p, err := labpayload.Generate(release.PayloadDirectory, "", r.version, labpayload.Options{
			SizePercent: sizePercent, AgentBytes: agentBytes, Earlier: earlier,
			Versions: versions,
			Defects:  map[string]labpayload.Defect{"kubelet": r.defect},
		})
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		earlier = append(earlier, p)
		releases.byName[r.name] = generatedRelease{release, r.kubelet, p}
	}
	return releases, nil
}

// removeReleases deletes the releases if they were generated.
func removeReleases() int {
	if releases.releases == nil {
		return 0
	}
	if err := os.RemoveAll(releases.releases.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// releaseByName returns a release by name.
func releaseByName(t *testing.T, name string) generatedRelease {
	t.Helper()
	releases.once.Do(func() { releases.releases, releases.err = generateReleases() })
	if releases.err != nil {
		t.Fatalf("make the releases: %v", releases.err)
	}
	return releases.releases.byName[name]
}
