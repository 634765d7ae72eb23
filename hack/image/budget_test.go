package main

import (
	"io"
	"strings"
	"testing"
)

func TestAnImageWithinItsBudgetsIsWritten(t *testing.T) {
	o := inputs(t, parts{})
	o.budgets = released()
	if err := run(t.Context(), o, io.Discard); err != nil {
		t.Error(err)
	}
}

// What is built elsewhere, the base, and patches may be as large as they are.
func TestTheImagesBudgetIsForWhatTheProjectBuilds(t *testing.T) {
	o := inputs(t, parts{})
	o.budgets = &budgets{operator: 1 << 40, image: 1}
	err := run(t.Context(), o, io.Discard)
	if err == nil {
		t.Fatal("an image over its budget is written")
	}
	if strings.Contains(err.Error(), external) {
		t.Errorf("hybrid-overlay-node counts: %v", err)
	}
}
