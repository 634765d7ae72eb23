package hostjobs

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/windows-machine-config/wmco/internal/controller/metric"
)

func TestPatchesAndWholeFilesAreCountedApart(t *testing.T) {
	sent := func(form string) float64 { return testutil.ToFloat64(metric.FilesSent.Of(form)) }
	files, patches := sent(metric.FullFile), sent(metric.Patch)
	countSent([]string{"kubelet-3", "proxy-3", "cni-3"}, []string{"small", "proxy-3", "cni-3"})
	if sent(metric.FullFile) != files+2 || sent(metric.Patch) != patches+1 {
		t.Errorf("%v files and %v patches were sent", sent(metric.FullFile)-files, sent(metric.Patch)-patches)
	}
}
