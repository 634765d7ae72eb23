package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// rowStart matches the beginning of each row that the program maintains.
var rowStart = regexp.MustCompile(`^\| ([RLD]-\d+) \|`)

// row is a requirement, a limit or a deviation. The last two cells of its line are generated.
type row struct {
	id    string
	cells []string // all cells except the two generated ones
	tests []string // the tests in the document
}

// remarkCell returns the last cell before the generated ones.
func (r row) remarkCell() string { return r.cells[len(r.cells)-1] }

// change is a row for which the tests differ from the document.
type change struct {
	id           string
	lost, gained []string
}

func (c change) String() string {
	text := c.id
	for _, test := range c.lost {
		text += "\n  is no longer cited by " + test
	}
	for _, test := range c.gained {
		text += "\n  is cited by " + test
	}
	return text
}

// updateDocument returns the document with the two last columns according to the citations, and the changed rows. It
// preserves every other byte, and fails on a broken row, on a violated rule, and on a citation of an identifier
// without a row.
func updateDocument(document []byte, found map[string][]proof) (fresh []byte, changes []change, err error) {
	rows := map[string]row{}
	var faults []error
	lines := strings.Split(string(document), "\n")
	for i, line := range lines {
		if !rowStart.MatchString(line) {
			continue
		}
		r, err := parseRow(line)
		if _, twice := rows[r.id]; err == nil && twice {
			err = fmt.Errorf("%s is listed twice", r.id)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", i+1, err))
			continue
		}
		rows[r.id] = r
		if lines[i] = r.formatLine(found[r.id]); lines[i] != line {
			changes = append(changes, r.compareTests(found[r.id]))
		}
	}
	faults = append(faults, checkKnownIDs(rows, found), checkRows(rows, found))
	return []byte(strings.Join(lines, "\n")), changes, errors.Join(faults...)
}

// parseRow parses the line of a row.
func parseRow(line string) (row, error) {
	id := rowStart.FindStringSubmatch(line)[1]
	cells := splitCells(line)
	last := len(cells) - 2
	if last < 3 || slices.Contains(cells[:last-1], "") {
		return row{id: id}, fmt.Errorf("%s needs a sentence, a remark (which may be empty), and two cells for tests", id)
	}
	r := row{id: id, cells: cells[:last]}
	for _, cell := range cells[last:] {
		if cell != "" {
			r.tests = append(r.tests, strings.Split(cell, "<br>")...)
		}
	}
	return r, nil
}

// splitCells returns the cells of a table line. A bar after a backslash is text.
func splitCells(line string) []string {
	const bar = "\x00"
	cells := strings.Split(strings.ReplaceAll(line, `\|`, bar), "|")
	cells = cells[1 : len(cells)-1]
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(strings.TrimSpace(cell), bar, `\|`)
	}
	return cells
}

// formatLine returns the line of the row with the tests that prove it.
func (r row) formatLine(proofs []proof) string {
	product := slices.DeleteFunc(slices.Clone(proofs), proof.isInLab)
	lab := slices.DeleteFunc(slices.Clone(proofs), func(p proof) bool { return !p.isInLab() })
	cells := append(slices.Clone(r.cells), strings.Join(formatTests(product), "<br>"), strings.Join(formatTests(lab), "<br>"))
	return "| " + strings.Join(cells, " | ") + " |"
}

// formatTests returns tests in the format of a table cell.
func formatTests(proofs []proof) (tests []string) {
	for _, p := range proofs {
		tests = append(tests, strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(p.String()))
	}
	return tests
}

func (r row) compareTests(proofs []proof) change {
	now := formatTests(proofs)
	without := func(all, some []string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(test string) bool { return slices.Contains(some, test) })
	}
	return change{id: r.id, lost: without(r.tests, now), gained: without(now, r.tests)}
}
