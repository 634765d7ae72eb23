package robustness

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/windows-machine-config/wmco/internal/payload"
	labpayload "github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// releaseFiles contains the operator's releases, which are generated at their first use.
type releaseFiles struct {
	once     sync.Once
	dir      string
	releases []testenv.Release
	err      error
}

// ensureReleases returns as many releases as the largest shape needs.
func (f *releaseFiles) ensureReleases(t *testing.T) []testenv.Release {
	t.Helper()
	f.once.Do(func() { f.err = f.generateReleases() })
	if f.err != nil {
		t.Fatalf("make the releases: %v", f.err)
	}
	return f.releases
}

func (f *releaseFiles) generateReleases() (err error) {
	if f.dir, err = os.MkdirTemp("", "wmco-robustness-"); err != nil {
		return err
	}
	var earlier []*payload.Payload
	for i := range max(small.Releases, large.Releases, machines.Releases) {
		release := testenv.Release{Version: fmt.Sprintf("12.0.%d", i), PayloadDirectory: filepath.Join(f.dir, fmt.Sprint(i))}
		p, err := labpayload.Generate(release.PayloadDirectory, "", release.Version, labpayload.Options{
			SizePercent: 10, AgentBytes: 128 << 10, Earlier: earlier,
			Versions: map[string]string{"kubelet": fmt.Sprintf("v1.36.%d", 3+i), payload.ComponentAgent: release.Version},
		})
		if err != nil {
			return err
		}
		earlier = append(earlier, p)
		f.releases = append(f.releases, release)
	}
	return nil
}

// deleteReleases deletes the releases after all tests.
func (f *releaseFiles) deleteReleases() int {
	if f.dir == "" {
		return 0
	}
	if err := os.RemoveAll(f.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
