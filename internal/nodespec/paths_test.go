package nodespec_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func TestPaths(t *testing.T) {
	sum := strings.Repeat("0123456789abcdef", 4)
	for got, want := range map[string]string{
		nodespec.AgentPath(sum):                   `C:\k\wicd\0123456789ab\wicd.exe`,
		nodespec.InboxSpec(sum):                   `C:\k\wicd\inbox\spec-0123456789ab.json`,
		nodespec.InboxPayload(sum):                `C:\k\wicd\inbox\payload-0123456789ab.zst`,
		nodespec.ReleaseDirectory("kubelet", sum): `C:\k\releases\kubelet-0123456789ab`,
		nodespec.LogDirectory("kubelet"):          `C:\var\log\kubelet`,
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// OpenShift's must-gather requests these logs from the kubelet of each Windows node: openshift/must-gather,
// collection-scripts/gather_windows_node_logs. The script has two more, for warnings and errors of the previous
// operator's agent.
func TestLogPath_MustGatherFindsLogs(t *testing.T) {
	requested := []string{"kube-proxy/kube-proxy.log", "hybrid-overlay/hybrid-overlay.log", "kubelet/kubelet.log",
		"containerd/containerd.log", "wicd/windows-instance-config-daemon.exe.INFO", "csi-proxy/csi-proxy.log"}
	var written []string
	for _, service := range nodespec.ServiceNames() {
		written = append(written, strings.ReplaceAll(strings.TrimPrefix(nodespec.LogPath(service), nodespec.LogRoot+`\`), `\`, "/"))
	}
	for _, path := range requested {
		if !slices.Contains(written, path) {
			t.Errorf("no service logs to %s", path)
		}
	}
}

func TestWithin(t *testing.T) {
	for name, test := range map[string]struct {
		path, dir string
		want      bool
	}{
		"a folder itself":                        {`C:\k`, `C:\k`, true},
		"what lies in it":                        {`C:\k\f`, `C:\k`, true},
		"what lies in it, in another case":       {`c:\K\F`, `C:\k`, true},
		"the folder with a backslash at its end": {`C:\k\f`, `C:\k\`, true},
		"a sibling whose name begins the same":   {`C:\kube`, `C:\k`, false},
		"the folder above":                       {`C:\`, `C:\k`, false},
		"nothing":                                {"", `C:\k`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if nodespec.IsWithin(test.path, test.dir) != test.want {
				t.Error(!test.want)
			}
		})
	}
	if !nodespec.IsSamePath(`C:\K\`, `c:\k`) || nodespec.IsSamePath(`C:\k`, `C:\k2`) {
		t.Error("SamePath")
	}
}
