package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/test/witness/question"
)

// newTestSubject returns a Windows machine with a disabled hns, where all other probes fail.
func newTestSubject(questions *[]string) subject {
	s := subject{name: "Windows Server 2022", probes: map[string]func(any) error{}}
	for _, q := range question.All() {
		s.probes[q.ID] = func(found any) error {
			*questions = append(*questions, q.ID)
			if hns, ok := found.(*question.Service); ok {
				hns.There, hns.Start = true, 4
				return nil
			}
			return errors.New("not here")
		}
	}
	return s
}

func TestRun_ContradictionFailsAndNamesFile(t *testing.T) {
	var output bytes.Buffer
	var questions []string
	dir := t.TempDir()
	if status := run(options{out: dir}, &output, newTestSubject(&questions)); status != 1 {
		t.Errorf("the status is %d", status)
	}
	if !strings.Contains(output.String(), "contradicted") || !strings.Contains(output.String(), "internal/plan/networking.go (wakeNetworking) relies on") {
		t.Error(output.String())
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != len(question.All()) {
		t.Errorf("%d documents, %v", len(files), err)
	}
	for _, q := range question.All() {
		if q.Changes && strings.Contains(" "+strings.Join(questions, " ")+" ", " "+q.ID+" ") {
			t.Errorf("%s was asked without -change", q.ID)
		}
	}
}

func TestRun_SucceedsWithoutContradiction(t *testing.T) {
	var output bytes.Buffer
	var questions []string
	if status := run(options{only: "N1,N9", change: true}, &output, newTestSubject(&questions)); status != 0 || strings.Join(questions, " ") != "N1 N9" {
		t.Errorf("status %d, asked %q: %s", status, questions, output.String())
	}
}

func TestRun_FailsOutsideWindows(t *testing.T) {
	if status := run(options{}, &bytes.Buffer{}, subject{}); status != 2 {
		t.Errorf("the status is %d", status)
	}
}

func TestMachine_HasProbeForEachQuestion(t *testing.T) {
	content, err := os.ReadFile("machine_windows.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range question.All() {
		if !strings.Contains(string(content), `"`+q.ID+`": typedProbe(`) {
			t.Errorf("nothing finds the evidence of %s", q.ID)
		}
	}
}
