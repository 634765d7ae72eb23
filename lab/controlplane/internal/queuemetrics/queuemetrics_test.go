package queuemetrics_test

import (
	"testing"

	_ "k8s.io/component-base/metrics/prometheus/workqueue" // as in all Kubernetes programs

	"github.com/windows-machine-config/wmco/lab/controlplane/internal/queuemetrics"
)

func TestQueueMetrics_Disabled(t *testing.T) {
	if queuemetrics.Disabled() {
		t.Fatal("Kubernetes has set its provider before queuemetrics has looked at it, or not at all")
	}
	queuemetrics.Disable()
	if !queuemetrics.Disabled() {
		t.Error("Kubernetes' provider is still there")
	}
}
