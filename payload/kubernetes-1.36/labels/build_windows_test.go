package labels

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/windows"
	"k8s.io/kubernetes/pkg/kubelet/winstats"
)

// The labels kubernetes.io/os and kubernetes.io/arch come from the build of the kubelet, and
// node.kubernetes.io/windows-build from this information: pkg/kubelet/kubelet_node_status_windows.go,
// getOSSpecificLabels.
func TestKubelet_ReportsWindowsBuild(t *testing.T) {
	info, err := winstats.GetOSInfo()
	if err != nil {
		t.Fatal(err)
	}
	major, minor, build := windows.RtlGetNtVersionNumbers()
	if got, want := info.GetBuild(), fmt.Sprintf("%d.%d.%d", major, minor, build); got != want {
		t.Errorf("the label is %q, Windows says that it is %s", got, want)
	}
	fmt.Fprintln(os.Stdout, "windows-build="+info.GetBuild())
}
