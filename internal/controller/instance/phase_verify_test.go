package instance

import (
	"slices"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func TestFailedChecks(t *testing.T) {
	desired := []nodespec.Check{
		{Name: "KubeletHealthy"}, {Name: "KubeProxyHealthy"}, {Name: "AntivirusExclusions", Advisory: true},
		{Name: "ExporterServes", Advisory: true},
	}
	results := []agentapi.CheckResult{
		{Name: "KubeletHealthy", Passed: true, Message: "200"}, {Name: "KubeProxyHealthy", Message: "connection refused"},
		{Name: "AntivirusExclusions", Message: "scans containerd.exe"},
	}
	t.Run("gating checks are those that keep a node from becoming Ready", func(t *testing.T) {
		if got := failedChecks(desired, results, false); !slices.Equal(got, []string{"KubeProxyHealthy: connection refused"}) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("advisory ones are distinguished, and one that was not answered has not passed", func(t *testing.T) {
		want := []string{"AntivirusExclusions: scans containerd.exe", "ExporterServes: the agent did not respond"}
		if got := failedChecks(desired, results, true); !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
	})
}
