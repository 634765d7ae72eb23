package main

import (
	"io"
	"testing"
)

func TestBudget_ImageWithinBudgetIsWritten(t *testing.T) {
	o := writeInputs(t, parts{})
	o.budgets = releaseBudgets()
	if err := run(t.Context(), o, io.Discard); err != nil {
		t.Error(err)
	}
}

// Components built elsewhere, the base, and patches may have any size.
func TestBudget_ExternalComponentsNotCounted(t *testing.T) {
	with, without := usedBudget(t, parts{}), usedBudget(t, parts{absent: true})
	if more := with - without; more > 100 || more < -100 {
		t.Errorf("with %s the image has %d bytes more of its budget", external, more)
	}
}

// usedBudget returns the used part of an image's budget, in bytes.
func usedBudget(t *testing.T, with parts) (total int64) {
	t.Helper()
	o := writeInputs(t, with)
	o.allowMissing = external
	operators, err := readOperators(o.operators, o.version)
	requireNoError(t, err)
	files, err := readPayload(o)
	requireNoError(t, err)
	w := writer{layout: t.TempDir(), create: o.create, version: o.version}
	result, err := w.write(operators, files, o.version)
	requireNoError(t, err)
	for _, s := range result.images[0].shares {
		total += s.size
	}
	return total
}
