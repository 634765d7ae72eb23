package main

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const example = `# Title

| ID | requirement | deviation or reason | proven by | lab |
|---|---|---|---|---|
| R-001 | It works for 'a \| b'. |  | stale |  |
| R-002 | It stops. | needs a real Windows host: only that stops. |  |  |
| R-003 | It is red. | D-1: it is blue. |  |  |

| L-01 | no proxy | lifted |  |  |  |

| D-1 | R-003 | It is blue, see L-01. | blue is better |  |  |

end
`

var (
	testA   = proof{"a_test.go", "TestA/x|y <z>"}
	testB   = proof{"b_test.go", "TestB"}
	inLab   = proof{"lab/a_test.go", "TestLab"}
	inFake  = proof{"internal/host/fake/a_test.go", "TestFake"}
	orderly = map[string][]proof{"R-001": {testA, testB, inFake, inLab}, "R-003": {testA}, "L-01": {testA}, "D-1": {testB}}
)

func TestDocument_ColumnsListCitingTests(t *testing.T) {
	fresh, changes, err := updateDocument([]byte(example), orderly)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(
		"| stale |  |", `| a_test.go: TestA/x\|y &lt;z><br>b_test.go: TestB | internal/host/fake/a_test.go: TestFake<br>lab/a_test.go: TestLab |`,
		"it is blue. |  |  |", `it is blue. | a_test.go: TestA/x\|y &lt;z> |  |`,
		"lifted |  |  |  |", `lifted |  | a_test.go: TestA/x\|y &lt;z> |  |`,
		"better |  |  |", `better | b_test.go: TestB |  |`,
	).Replace(example)
	if string(fresh) != want {
		t.Errorf("got:\n%s\nwant:\n%s", fresh, want)
	}
	if len(changes) != 4 {
		t.Errorf("changes %v", changes)
	}
	again, changes, err := updateDocument(fresh, orderly)
	if err != nil || len(changes) > 0 || string(again) != want {
		t.Errorf("a second run gave %v, %v and:\n%s", err, changes, again)
	}
}

func TestDocument_DeviationExplainsMissingTest(t *testing.T) {
	proofs := maps.Clone(orderly)
	delete(proofs, "R-003")
	if _, _, err := updateDocument([]byte(example), proofs); err != nil {
		t.Error(err)
	}
}

func TestDocument_MovedCitationReportedForBothRows(t *testing.T) {
	document, _, err := updateDocument([]byte(example), orderly)
	if err != nil {
		t.Fatal(err)
	}
	_, changes, err := updateDocument(document, map[string][]proof{"R-001": {inLab, testB}, "R-002": {testA}, "R-003": {testA},
		"L-01": {testA}, "D-1": {testB}})
	if err != nil || len(changes) != 2 {
		t.Fatalf("%v, %v", changes, err)
	}
	for i, want := range []string{
		"R-001\n  is no longer cited by a_test.go: TestA/x\\|y &lt;z>\n  is no longer cited by internal/host/fake/a_test.go: TestFake",
		"R-002\n  is cited by a_test.go: TestA/x\\|y &lt;z>",
	} {
		if got := changes[i].String(); got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	}
}

func TestDocument_InvalidRowsRejected(t *testing.T) {
	with := func(id string, proofs ...proof) map[string][]proof {
		all := map[string][]proof{id: proofs}
		for other, those := range orderly {
			if other != id {
				all[other] = those
			}
		}
		return all
	}
	for name, test := range map[string]struct {
		old, new string
		found    map[string][]proof
		message  string
	}{
		"a row that nothing proves":     {"", "", with("R-001"), "R-001 has no test of the product"},
		"a row that only the lab shows": {"", "", with("R-001", inLab), "R-001 has no test of the product"},
		"a row that is proven by now": {"needs a real Windows host:", notProven, with("R-002", testA),
			"R-002 has a test now"},
		"a remark that gives no reason": {"needs a real Windows host:", "some day:", orderly,
			`R-002: "some day:`},
		"a second remark that gives none": {"that stops.", "that stops.<br>Some day.", orderly,
			`R-002: "Some day."`},
		"a remark with a deviation that is not listed": {"D-1: it", "D-2: it", orderly, `R-003: "D-2: it is blue."`},
		"a deviation that a row does not tell": {"D-1: it is blue.", "", orderly,
			"D-1 deviates from R-003, whose remark does not say so"},
		"a deviation that another row tells": {"needs a real Windows host: only that stops.", "D-1: it is blue.",
			with("R-002", testA), "R-002: its remark names D-1"},
		"a deviation that nothing pins": {"", "", with("D-1", inLab), "no test pins D-1"},
		"a limit of an unknown state":   {"| lifted |", "| gone |", orderly, `L-01: the state "gone"`},
		"a limit without proof":         {"", "", with("L-01"), "L-01 has no test of the product"},
		"an identifier that is in no table": {"", "", with("R-999", testA),
			"R-999 is in no table, but is cited by a_test.go"},
		"a row that is listed twice": {"end", "| R-001 | Again. |  |  |  |", orderly,
			"R-001 is listed twice"},
		"a row without words": {"end", "| R-004 |  |  |  |  |", orderly, "R-004 needs a sentence"},
		"a row with too few cells": {"end", "| R-004 | It. |  |  |", orderly,
			"line 13: R-004 needs a sentence"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := updateDocument([]byte(strings.Replace(example, test.old, test.new, 1)), test.found)
			if err == nil || !strings.Contains(err.Error(), test.message) {
				t.Errorf("got %v, want an error with %q", err, test.message)
			}
		})
	}
}

func TestDocument_CheckReportsTestsWithoutWriting(t *testing.T) {
	root := t.TempDir()
	write(t, root, document, "| R-001 | It works. |  |  |  |\n")
	write(t, root, "a_test.go", "package a\n\n// R-001\nfunc TestA() {}\n")

	var out strings.Builder
	if err := run(root, true, &out); !errors.Is(err, errStale) ||
		out.String() != "R-001\n  is cited by a_test.go: TestA\n" {
		t.Errorf("the check gave %v and:\n%s", err, out.String())
	}
	if got := read(t, root, document); got != "| R-001 | It works. |  |  |  |\n" {
		t.Errorf("the check changed the document to:\n%s", got)
	}
	if err := run(root, false, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := read(t, root, document); got != "| R-001 | It works. |  | a_test.go: TestA |  |\n" {
		t.Errorf("the document is:\n%s", got)
	}
	if err := run(root, true, io.Discard); err != nil {
		t.Errorf("the check of a fresh document gave %v", err)
	}
}

// The guides to earlier releases contain 215 requirements and 28 limits. The document must contain all of them.
func TestDocument_HasAllNumberedRows(t *testing.T) {
	text := read(t, "../..", document)
	for kind, count := range map[string]int{"R": 215, "L": 28, "D": 13} {
		rows := regexp.MustCompile(`(?m)^\| (`+kind+`-\d+) \| `).FindAllStringSubmatch(text, -1)
		if len(rows) != count {
			t.Errorf("the document has %d rows of %s, want %d", len(rows), kind, count)
		}
		for i, columns := range rows {
			number, err := strconv.Atoi(strings.TrimPrefix(columns[1], kind+"-"))
			if err != nil || number != i+1 {
				t.Errorf("%s is in the place of %s-%d", columns[1], kind, i+1)
			}
		}
	}
}

func write(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, root, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestProof_TestsOfRealProgramsNotInLab(t *testing.T) {
	for file, want := range map[string]bool{
		"lab/standin/kubelet_test.go": true, "internal/host/fake/machine_test.go": true,
		"lab/controlplane/flags_test.go":          true,
		"lab/controlplane/kubelet/config_test.go": false, "lab/wine/components/cni_test.go": false,
		"test/join_test.go": false,
	} {
		if got := (proof{file, "TestA"}).isInLab(); got != want {
			t.Errorf("%s is of the lab: %t", file, got)
		}
	}
}
