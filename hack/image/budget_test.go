package main

import (
	"fmt"
	"io"
	"testing"

	labpayload "github.com/windows-machine-config/wmco/lab/payload"
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

func TestBudget_MorePerKubernetesVersion(t *testing.T) {
	release := &budgets{image: 100, minor: 40}
	image := []writtenImage{{shares: []share{{"all", 150}}}}
	for versions, fits := range map[int]bool{1: false, 2: false, 3: true} {
		minors := map[string]string{}
		for i := range versions - 1 {
			minors[fmt.Sprintf("1.%d", 40+i)] = "v1.40.0"
		}
		p, err := labpayload.Generate(t.TempDir(), "", "12.0.0", labpayload.Options{SizePercent: 1, Minors: minors})
		requireNoError(t, err)
		if err := release.checkImages(image, p); (err == nil) != fits {
			t.Errorf("with %d versions of Kubernetes: %v", versions, err)
		}
	}
}
