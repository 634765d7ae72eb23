package instance

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/windows-machine-config/wmco/internal/controller/metrics"
)

// jobDurations returns the number of measurements of a phase and their sum in seconds.
func jobDurations(t *testing.T, phase string) (count uint64, seconds float64) {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "wmco_job_duration_seconds" {
			continue
		}
		for _, series := range family.GetMetric() {
			if series.GetLabel()[0].GetValue() == phase {
				return series.GetHistogram().GetSampleCount(), series.GetHistogram().GetSampleSum()
			}
		}
	}
	return 0, 0
}

func TestAttempts_CountedByOutcome(t *testing.T) {
	x := newTrial(t, listedInstance())
	x.server = func(context.Context) (net.Conn, error) {
		x.clock.Step(3 * time.Second)
		return nil, errors.New("no route")
	}
	attempts := testutil.ToFloat64(metrics.Attempts.Of(metrics.Failed))
	failed := testutil.ToFloat64(metrics.AttemptsFailed.Of("Unreachable"))
	count, seconds := jobDurations(t, "Connect")
	before, _ := jobDurations(t, "Facts")
	x.reconcile()
	x.reconcile()
	t.Run("one that fails, with its reason", func(t *testing.T) {
		if n := testutil.ToFloat64(metrics.Attempts.Of(metrics.Failed)) - attempts; n != 2 {
			t.Errorf("%v have failed", n)
		}
		if n := testutil.ToFloat64(metrics.AttemptsFailed.Of("Unreachable")) - failed; n != 2 {
			t.Errorf("%v have failed because the host is unreachable", n)
		}
	})
	t.Run("and the job that took time is measured, and no other", func(t *testing.T) {
		if n, total := jobDurations(t, "Connect"); n != count+2 || total-seconds != 6 {
			t.Errorf("it was measured %d times, for %v s", n-count, total-seconds)
		}
		if n, _ := jobDurations(t, "Facts"); n != before {
			t.Error("a job that was not begun is measured")
		}
	})
	t.Run("one that waits is no failure", func(t *testing.T) {
		waiting := testutil.ToFloat64(metrics.Attempts.Of(metrics.Waiting))
		instance := x.getInstance()
		instance.Spec.Paused = true
		if err := x.Client.Update(t.Context(), instance); err != nil {
			t.Fatal(err)
		}
		x.reconcile()
		if n := testutil.ToFloat64(metrics.Attempts.Of(metrics.Waiting)) - waiting; n != 1 {
			t.Errorf("%v wait", n)
		}
		if n := testutil.ToFloat64(metrics.Attempts.Of(metrics.Failed)) - attempts; n != 2 {
			t.Errorf("%v have failed", n)
		}
	})
}
