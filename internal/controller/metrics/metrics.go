// Package metrics defines the operator's metrics: the meaning, the labels and the maximum number of series of
// each metric. All metrics are in catalog.go; each controller sets the metrics of its own facts. The package
// makes no decisions.
package metrics

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Type is the type of a metric.
type Type string

// Types of metrics.
const (
	TypeGauge     Type = "gauge"
	TypeCounter   Type = "counter"
	TypeHistogram Type = "histogram"
)

// Other is the value of a label for all values beyond the bound.
const Other = "Other"

// Label is a label of a metric.
type Label struct {
	Name string
	// Values describes the values in words.
	Values string
	// MaxValues is the maximum number of values, not counting Other. Zero is for labels with a fixed number of
	// values per object: these series are deleted with the object.
	MaxValues int
}

// Definition describes a metric.
type Definition struct {
	Name, Help string
	Type       Type
	Labels     []Label

	// createSeries creates the series with a value of the label, if the metric bounds the values.
	createSeries func(value string)
}

// defined holds all metrics. Only the initialization of this package writes to it.
var defined []Definition

// Catalog returns all metrics, sorted by name.
func Catalog() []Definition {
	return slices.SortedFunc(slices.Values(defined), func(a, b Definition) int { return cmp.Compare(a.Name, b.Name) })
}

func registerMetric(d Definition, collectors ...prometheus.Collector) {
	defined = append(defined, d)
	metrics.Registry.MustRegister(collectors...)
}

func newGauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	registerMetric(Definition{Name: name, Help: help, Type: TypeGauge}, g)
	return g
}

func newCounter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	registerMetric(Definition{Name: name, Help: help, Type: TypeCounter}, c)
	return c
}

// Gauges holds the series of a gauge with a label.
type Gauges struct {
	vec     *prometheus.GaugeVec
	limiter labelLimiter
}

func newGauges(name, help string, label Label) *Gauges {
	g := &Gauges{vec: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{label.Name}),
		limiter: labelLimiter{maxValues: label.MaxValues}}
	registerMetric(Definition{name, help, TypeGauge, []Label{label}, func(value string) { g.Of(value) }}, g.vec)
	return g
}

// Of returns the series with a value of the label.
func (g *Gauges) Of(value string) prometheus.Gauge {
	return g.vec.WithLabelValues(g.limiter.limitValue(value))
}

// Counters holds the series of a counter with a label.
type Counters struct {
	vec     *prometheus.CounterVec
	limiter labelLimiter
}

func newCounters(name, help string, label Label) *Counters {
	c := &Counters{vec: prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label.Name}),
		limiter: labelLimiter{maxValues: label.MaxValues}}
	registerMetric(Definition{name, help, TypeCounter, []Label{label}, func(value string) { c.Of(value) }}, c.vec)
	return c
}

// Of returns the series with a value of the label.
func (c *Counters) Of(value string) prometheus.Counter {
	return c.vec.WithLabelValues(c.limiter.limitValue(value))
}

// Forget deletes the series of a deleted object.
func (c *Counters) Forget(value string) { c.vec.DeleteLabelValues(value) }

// Histograms holds the series of a histogram with a label.
type Histograms struct {
	vec     *prometheus.HistogramVec
	limiter labelLimiter
}

func newHistograms(name, help string, buckets []float64, label Label) *Histograms {
	h := &Histograms{
		vec: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets},
			[]string{label.Name}),
		limiter: labelLimiter{maxValues: label.MaxValues},
	}
	registerMetric(Definition{name, help, TypeHistogram, []Label{label}, func(value string) { h.Of(value) }}, h.vec)
	return h
}

// Of returns the series with a value of the label.
func (h *Histograms) Of(value string) prometheus.Observer {
	return h.vec.WithLabelValues(h.limiter.limitValue(value))
}

// StateGauge is a gauge with the label reason and one series at a time: the state (1 or 0) and its reason.
type StateGauge struct {
	vec *prometheus.GaugeVec

	mu     sync.Mutex
	reason *string
}

func newStateGauge(name, help string) *StateGauge {
	label := Label{Name: "reason", Values: "one at a time", MaxValues: 1}
	s := &StateGauge{vec: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{label.Name})}
	registerMetric(Definition{name, help, TypeGauge, []Label{label}, func(value string) { s.Set(false, value) }}, s.vec)
	return s
}

// Set sets the state and its reason.
func (s *StateGauge) Set(holds bool, reason string) {
	reason = strings.ToValidUTF8(reason, "?")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vec.WithLabelValues(reason).Set(boolToFloat(holds))
	if s.reason != nil && *s.reason != reason {
		s.vec.DeleteLabelValues(*s.reason)
	}
	s.reason = &reason
}

// labelLimiter limits the number of values of a label.
type labelLimiter struct {
	maxValues int // no limit if it is zero

	mu   sync.Mutex
	seen map[string]bool
}

// limitValue returns the value, or Other if there are too many.
func (b *labelLimiter) limitValue(value string) string {
	value = strings.ToValidUTF8(value, "?")
	if b.maxValues == 0 {
		return value
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.seen[value]:
		return value
	case len(b.seen) >= b.maxValues:
		return Other
	case b.seen == nil:
		b.seen = map[string]bool{}
	}
	b.seen[value] = true
	return value
}
