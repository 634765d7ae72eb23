package agent_test

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// testdata/releases contains the unmodified files that an agent of each release leaves on a host. The agents of
// all later releases must handle such files. The files are never regenerated: for a new release, files are
// added by `go test ./internal/agent -run TestFilesOfReleases -add-release 12.1`. The agent's program and the
// payload of this test must not change, because the files name them by digest.

var addRelease = flag.String("add-release", "", "add what this release's agent leaves on a host to testdata/releases")

const (
	releasesDirectory = "testdata/releases"
	releasesSums      = "SHA256SUMS"
)

// platforms are the hosts of each release, with the specifics of their NodeSpecs.
var platforms = map[string]func(nodespec.NodeSpec) nodespec.NodeSpec{
	"none":  func(spec nodespec.NodeSpec) nodespec.NodeSpec { return spec },
	"azure": withCloud, // with an identity besides the kubelet's
}

// recordFiles returns the files that an agent leaves for the next agent, by name in testdata.
func recordFiles() map[string]string {
	paths := map[string]string{
		"spec.json": nodespec.SpecPath, "ledger.json": nodespec.LedgerPath, "applied.json": nodespec.AppliedPath,
		"fallback.json": nodespec.RollbackTargetPath, "fallback-applied.json": nodespec.RollbackAppliedPath,
	}
	for _, release := range newSpec(nil).Releases {
		paths["manifest-"+release.Component+".json"] = release.Manifest()
	}
	return paths
}

// configureWith configures the host with the spec, and returns the spec extended during the configuration.
func (r *rig) configureWith(spec nodespec.NodeSpec) nodespec.NodeSpec {
	r.Helper()
	for range 10 {
		boot := r.BootID()
		line, _ := r.apply(spec)
		if line.Type == agentapi.TypeRebooting {
			r.awaitBoot(boot)
			continue
		}
		if line.Type != agentapi.TypeResult {
			r.Fatalf("%s %v", line.Type, line.Failure)
		}
		if len(line.Result.Plan.Needs) == 0 {
			return spec
		}
		for _, need := range line.Result.Plan.Needs {
			switch need {
			case nodespec.NeedCertificate:
				spec = spec.WithCertificate("", r.signRequest(line.Result.Facts.Identity.Request))
			case nodespec.NeedCertificateOf(cloud.Name):
				spec = spec.WithCertificate(cloud.Name, r.signRequest(line.Result.Facts.Identities[cloud.Name].Request))
			case nodespec.NeedPodSubnet:
				spec.Network.PodSubnet = podSubnet
			}
		}
	}
	r.Fatal("the host does not become a node")
	return spec
}

// collectLeftFiles returns the files that the current agent leaves on a host of the platform: the files of a node in
// service, and the rollback target that is kept during an upgrade.
func collectLeftFiles(t *testing.T, platform string) map[string][]byte {
	t.Helper()
	r := newRig(t).start()
	former := r.configureWith(platforms[platform](newSpec(nil)))
	left := map[string][]byte{}
	collect := func() {
		for name, path := range recordFiles() {
			if data, err := r.Drive().ReadFile(path); err == nil && left[name] == nil {
				left[name] = data
			}
		}
	}
	collect()
	r.mustResult(r.applyUpgrade(platforms[platform](r.nextSpec()), former))
	collect()
	if len(left) != len(recordFiles()) {
		t.Fatalf("%d files of %d are there", len(left), len(recordFiles()))
	}
	return left
}

func TestFilesOfReleases(t *testing.T) {
	if *addRelease != "" {
		writeRelease(t, *addRelease)
	}
	sums, err := os.ReadFile(filepath.Join(releasesDirectory, releasesSums))
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, line := range strings.Split(strings.TrimSpace(string(sums)), "\n") {
		want, name, _ := strings.Cut(line, "  ")
		listed = append(listed, name)
		data, err := os.ReadFile(filepath.Join(releasesDirectory, name))
		if err != nil || hexDigest(data) != want {
			t.Errorf("%s is not what that release has left on hosts (%v): put it back; files of releases are only ever added", name, err)
		}
	}
	t.Run("each is listed with its digest", func(t *testing.T) {
		for _, name := range filesIn(t, releasesDirectory) {
			if name != releasesSums && !slices.Contains(listed, name) {
				t.Errorf("%s is not listed", name)
			}
		}
	})
}

func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// writeRelease adds the files of a release. Existing files are not changed.
func writeRelease(t *testing.T, release string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(releasesDirectory, release)); err == nil {
		t.Fatalf("release %s is there; files of releases are only ever added", release)
	}
	var lines bytes.Buffer
	for platform := range platforms {
		dir := filepath.Join(releasesDirectory, release, platform)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, data := range collectLeftFiles(t, platform) {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range filesIn(t, dir) {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&lines, "%s  %s/%s/%s\n", hexDigest(data), release, platform, name)
		}
	}
	file, err := os.OpenFile(filepath.Join(releasesDirectory, releasesSums), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(lines.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// readReleaseFiles returns the files of a release, by name in testdata.
func readReleaseFiles(t *testing.T, release, platform string) map[string][]byte {
	t.Helper()
	left := map[string][]byte{}
	for name := range recordFiles() {
		data, err := os.ReadFile(filepath.Join(releasesDirectory, release, platform, name))
		if err != nil {
			t.Fatal(err)
		}
		left[name] = data
	}
	return left
}

// listReleases returns the releases with files in testdata.
func listReleases(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(releasesDirectory)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}
