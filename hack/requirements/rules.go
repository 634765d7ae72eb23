package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// reasons lists the prefixes of remarks for rows without a test of the product. A deviation always has a test.
var reasons = []string{"text only:", "needs a real Windows host:", "a neighbor does it:", "not built yet:", notProven}

// notProven is the prefix for a row with a planned test. The remark must be removed when the test exists.
const notProven = "not proven yet:"

// states lists the states of a limit.
var states = []string{"kept", "lifted", "lifted in part"}

// checkRows applies the rules to all rows.
func checkRows(rows map[string]row, found map[string][]proof) error {
	var faults []error
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		r := rows[id]
		proven := slices.ContainsFunc(found[id], func(p proof) bool { return !p.isInLab() })
		if id[0] == 'D' {
			faults = append(faults, r.checkDeviation(proven, rows))
		} else {
			faults = append(faults, r.checkProof(proven), r.checkRemark(rows))
		}
		if id[0] == 'L' && !slices.Contains(states, r.cells[2]) {
			faults = append(faults, fmt.Errorf("%s: the state %q is not one of %s", id, r.cells[2], strings.Join(states, ", ")))
		}
	}
	return errors.Join(faults...)
}

// checkProof reports a row that has neither a test of the product nor a reason for the missing test.
func (r row) checkProof(proven bool) error {
	switch {
	case proven && strings.Contains(r.remarkCell(), notProven):
		return fmt.Errorf("%s has a test now: remove the remark that begins with %q", r.id, notProven)
	case !proven && r.remarkCell() == "": // the text of the remark is checked elsewhere
		return fmt.Errorf("%s has no test of the product and no reason why not", r.id)
	}
	return nil
}

// checkRemark reports a part of the remark that is neither a reason for a missing test nor a deviation.
func (r row) checkRemark(rows map[string]row) error {
	for _, part := range r.remarkParts() {
		deviation, _, _ := strings.Cut(part, ":")
		_, listed := rows[deviation]
		switch {
		case hasAnyPrefix(part, reasons):
		case !strings.HasPrefix(deviation, "D-") || !listed:
			return fmt.Errorf("%s: %q begins neither with a deviation nor with one of the reasons %q", r.id, part, reasons)
		case !slices.Contains(identifier.FindAllString(rows[deviation].cells[1], -1), r.id):
			return fmt.Errorf("%s: its remark names %s, which does not mention %s", r.id, deviation, r.id)
		}
	}
	return nil
}

// checkDeviation reports a deviation without a test, and a requirement in the deviation's second cell that does not
// mention the deviation in its remark.
func (r row) checkDeviation(pinned bool, rows map[string]row) error {
	if !pinned {
		return fmt.Errorf("no test pins %s: cite it in a test that fails as soon as the product follows the requirement",
			r.id)
	}
	for _, of := range identifier.FindAllString(r.cells[1], -1) {
		if !slices.ContainsFunc(rows[of].remarkParts(), func(part string) bool { return strings.HasPrefix(part, r.id+":") }) {
			return fmt.Errorf("%s deviates from %s, whose remark does not say so", r.id, of)
		}
	}
	return nil
}

// remarkParts returns the parts of a row's remark.
func (r row) remarkParts() []string {
	if len(r.cells) == 0 || r.remarkCell() == "" {
		return nil
	}
	return strings.Split(r.remarkCell(), "<br>")
}

func hasAnyPrefix(text string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}

// checkKnownIDs reports every citation of an identifier without a row.
func checkKnownIDs(rows map[string]row, found map[string][]proof) error {
	var faults []error
	for _, id := range slices.Sorted(maps.Keys(found)) {
		if _, listed := rows[id]; !listed {
			faults = append(faults, fmt.Errorf("%s is in no table, but is cited by %s", id,
				strings.Join(formatTests(found[id]), ", ")))
		}
	}
	return errors.Join(faults...)
}
