package bench

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Counters of the operator, which runs in this process.
const (
	stepsCounter      = "wmco_steps_total"
	reconcilesCounter = "controller_runtime_reconcile_total"
)

// counter returns the sum of a counter's series; label, if not empty, chooses those with its value.
func counter(name, label, value string) (int, error) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return 0, fmt.Errorf("read the operator's metrics: %w", err)
	}
	total := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, series := range family.GetMetric() {
			chosen := label == ""
			for _, pair := range series.GetLabel() {
				chosen = chosen || pair.GetName() == label && pair.GetValue() == value
			}
			if chosen {
				total += series.GetCounter().GetValue()
			}
		}
	}
	return int(total), nil
}
