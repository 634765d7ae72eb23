package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// row is a requirement in a table of the document: identifier, sentence, tests.
var row = regexp.MustCompile(`^\| (R-\d{3}) \| (.*\S) \|([^|]*)\|$`)

// rewrite returns the document with its last column as the citations say. It keeps every other byte. Unknown requirements
// among the citations, and one that is listed twice or in a broken row, are errors.
func rewrite(document []byte, citations map[string][]citation) ([]byte, error) {
	known := map[string]bool{}
	lines := strings.Split(string(document), "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "| R-") {
			continue
		}
		columns := row.FindStringSubmatch(line)
		if columns == nil {
			return nil, fmt.Errorf("line %d is not a row of identifier, sentence and tests: %s", i+1, line)
		}
		id, sentence := columns[1], columns[2]
		if known[id] {
			return nil, fmt.Errorf("line %d lists %s a second time", i+1, id)
		}
		known[id] = true
		lines[i] = fmt.Sprintf("| %s | %s | %s |", id, sentence, cell(citations[id]))
	}
	if err := checkKnown(known, citations); err != nil {
		return nil, err
	}
	return []byte(strings.Join(lines, "\n")), nil
}

// cell writes the places that cite one requirement, one line for each file; they come sorted.
func cell(places []citation) string {
	var files []string
	tests := map[string][]string{}
	for _, place := range places {
		if !slices.Contains(files, place.file) {
			files = append(files, place.file)
		}
		if place.test != "" {
			tests[place.file] = append(tests[place.file], place.test)
		}
	}
	for i, file := range files {
		if len(tests[file]) > 0 {
			files[i] = file + ": " + strings.Join(tests[file], ", ")
		}
	}
	return strings.Join(files, "<br>")
}

// checkKnown names every citation of a requirement that the document does not have.
func checkKnown(known map[string]bool, citations map[string][]citation) error {
	var unknown []string
	for id, places := range citations {
		if known[id] {
			continue
		}
		for _, place := range places {
			unknown = append(unknown, fmt.Sprintf("%s cites %s", place.file, id))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return fmt.Errorf("there is no such requirement: %s", strings.Join(unknown, ", "))
}
