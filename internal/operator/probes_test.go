package operator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestAPassThatDoesNotEnd(t *testing.T) {
	registry := prometheus.NewRegistry()
	longest := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: longestPass}, []string{"name", "controller"})
	registry.MustRegister(longest)
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "workqueue_unfinished_work_seconds"},
		func() float64 {
			return 1e9
		}))
	if err := checkPasses(registry); err != nil {
		t.Errorf("without a controller: %v", err)
	}
	longest.WithLabelValues("csr", "csr").Set(0)
	longest.WithLabelValues("windowsinstance", "windowsinstance").Set(stuckLimit.Seconds())
	if err := checkPasses(registry); err != nil {
		t.Errorf("a pass of no more than the limit: %v", err)
	}
	longest.WithLabelValues("windowsinstance", "windowsinstance").Set((stuckLimit + time.Minute).Seconds())
	err := checkPasses(registry)
	if err == nil || !strings.Contains(err.Error(), "windowsinstance") || !strings.Contains(err.Error(), "6h1m0s") {
		t.Errorf("a longer one: %v", err)
	}
	registry.MustRegister(unreadable{})
	if err := checkPasses(registry); err == nil || !strings.Contains(err.Error(), "windowsinstance") {
		t.Errorf("beside a metric that cannot be read: %v", err)
	}
	longest.WithLabelValues("windowsinstance", "windowsinstance").Set(0)
	if err := checkPasses(registry); err != nil {
		t.Errorf("when it has ended, beside a metric that cannot be read: %v", err)
	}
}

// unreadable is a metric that cannot be read.
type unreadable struct{}

func (unreadable) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- prometheus.NewDesc("unreadable", "Cannot be read.", nil, nil)
}

func (unreadable) Collect(found chan<- prometheus.Metric) {
	found <- prometheus.NewInvalidMetric(prometheus.NewDesc("unreadable", "Cannot be read.", nil, nil),
		errors.New("no such file"))
}
