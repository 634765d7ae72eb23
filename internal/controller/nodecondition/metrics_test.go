package nodecondition

import (
	"testing"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/windows-machine-config/wmco/internal/controller/metrics"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func TestMetrics_NodesCountedByStatus(t *testing.T) {
	x := newTrial(t)
	count := func(status corev1.ConditionStatus) float64 {
		var written dto.Metric
		if err := metrics.NodesConfiguration.Of(string(status)).Write(&written); err != nil {
			t.Fatal(err)
		}
		return written.GetGauge().GetValue()
	}
	for _, c := range []struct {
		written corev1.ConditionStatus
		counted corev1.ConditionStatus
	}{
		{corev1.ConditionTrue, corev1.ConditionTrue}, {corev1.ConditionFalse, corev1.ConditionFalse},
		{"Pwned", corev1.ConditionUnknown}, {corev1.ConditionTrue, corev1.ConditionTrue},
	} {
		x.write(c.written, "Any", "", noon)
		x.reconcile()
		for _, status := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse,
			corev1.ConditionUnknown} {
			if got, is := count(status), status == c.counted; got != 0 != is {
				t.Errorf("with status %s there are %v nodes %s", c.written, got, status)
			}
		}
	}
	if err := x.Client.Delete(t.Context(), x.getNode()); err != nil {
		t.Fatal(err)
	}
	if x.reconcile(); count(corev1.ConditionTrue) != 0 {
		t.Error("a Node that is gone is counted")
	}
}

func TestMetrics_RepairsCountedByNode(t *testing.T) {
	x := newTrial(t)
	series := func() map[string]float64 {
		families, err := ctrlmetrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]float64{}
		for _, family := range families {
			for _, m := range family.GetMetric() {
				if family.GetName() == "wmco_agent_repairs_total" {
					found[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
		return found
	}
	metrics.RepairsReported.Forget("win")
	x.reconcile()
	if value, exists := series()["win"]; !exists || value != 0 {
		t.Errorf("before the first repair there is %v: Prometheus needs a zero to see an increase", series())
	}
	var before, after *corev1.Node
	for _, message := range []string{"a", "b"} {
		before, after = x.write(corev1.ConditionFalse, nodespec.ConfigurationRepaired, message, noon)
	}
	if value := series()["win"]; value != 2 {
		t.Errorf("after two repairs it is %v", value)
	}
	if err := x.Client.Delete(t.Context(), x.getNode()); err != nil {
		t.Fatal(err)
	}
	if x.reconcile(); len(series()) > 0 {
		t.Errorf("of a Node that is gone there is %v", series())
	}
	x.emitConditionEvent(t.Context(), before, after)
	if len(series()) > 0 {
		t.Errorf("after a repair that the operator sees later there is %v", series())
	}
}
