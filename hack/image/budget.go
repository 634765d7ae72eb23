package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
)

// budgets contains the maximum sizes of parts in bytes. Each release is copied to every cluster, so a build that
// exceeds a budget fails.
type budgets struct {
	operator int64 // the program
	// image is for the compressed layers of a platform. The layers of the base and hybrid-overlay-node, which is
	// built elsewhere, are excluded. Patches are excluded as well, because they depend on the number of earlier
	// releases. The share of hybrid-overlay-node in the pack is estimated by its separate size, which is slightly
	// too large. An image may have minor more bytes for each minor version of Kubernetes after the first.
	image, minor int64
}

// releaseBudgets returns the budgets of docs/benchmarks.md.
func releaseBudgets() *budgets {
	return &budgets{operator: 80_000_000, image: 160_000_000, minor: 40_000_000}
}

// external is the component that is built elsewhere.
const external = "hybrid-overlay-node"

// share is the contribution of a layer to the size of an image.
type share struct {
	what string
	size int64
}

func (b *budgets) checkOperators(operators []operator) error {
	if b == nil {
		return nil
	}
	var faults []error
	for _, o := range operators {
		info, err := os.Stat(o.file)
		if err == nil && info.Size() > b.operator {
			err = fmt.Errorf("the operator for %s has %s, and its budget is %s: find what has grown with `go tool nm -size -sort size %s`",
				o.platform, formatMegabytes(info.Size()), formatMegabytes(b.operator), o.file)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

func (b *budgets) checkImages(images []writtenImage, p *payload.Payload) error {
	if b == nil {
		return nil
	}
	limit := b.image + b.minor*int64(countMinors(p)-1)
	var faults []error
	for _, i := range images {
		total := int64(0)
		for _, s := range i.shares {
			total += s.size
		}
		if total > limit {
			faults = append(faults, fmt.Errorf("the image for %s has %s of compressed layers, and its budget is %s; they are: %s",
				i.platform.String(), formatMegabytes(total), formatMegabytes(limit), largestFirst(i.shares)))
		}
	}
	return errors.Join(faults...)
}

// countMinors returns the number of minor versions of Kubernetes with a kubelet in the payload, at least 1.
func countMinors(p *payload.Payload) int {
	count := 0
	for _, c := range p.Manifest().Components {
		if c.Name == nodespec.ServiceKubelet && !p.IsIncomplete(c) {
			count++
		}
	}
	return max(count, 1)
}

func largestFirst(shares []share) string {
	sorted := slices.SortedFunc(slices.Values(shares), func(a, b share) int { return cmp.Compare(b.size, a.size) })
	lines := make([]string, 0, len(sorted))
	for _, s := range sorted {
		lines = append(lines, s.what+" "+formatMegabytes(s.size))
	}
	return strings.Join(lines, ", ")
}

func formatMegabytes(size int64) string { return fmt.Sprintf("%.1f MB", float64(size)/1e6) }
