package hostjobs

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/windows-machine-config/wmco/internal/controller/metrics"
)

func TestCountSent_PatchesCountedSeparately(t *testing.T) {
	sent := func(form string) float64 { return testutil.ToFloat64(metrics.FilesSent.Of(form)) }
	files, patches := sent(metrics.FullFile), sent(metrics.Patch)
	countSent([]string{"kubelet-3", "proxy-3", "cni-3"}, []string{"small", "proxy-3", "cni-3"})
	if sent(metrics.FullFile) != files+2 || sent(metrics.Patch) != patches+1 {
		t.Errorf("%v files and %v patches were sent", sent(metrics.FullFile)-files, sent(metrics.Patch)-patches)
	}
}
