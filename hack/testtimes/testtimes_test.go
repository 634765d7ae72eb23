package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"
)

const events = `{"Time":"2026-01-01T10:00:00Z","Action":"start","Package":"github.com/windows-machine-config/wmco/internal/a"}
{"Time":"2026-01-01T10:00:09Z","Action":"pass","Package":"github.com/windows-machine-config/wmco/internal/a","Test":"TestSlow","Elapsed":8}
{"Time":"2026-01-01T10:00:09Z","Action":"pass","Package":"github.com/windows-machine-config/wmco/internal/a","Test":"TestSlow/part","Elapsed":8}
{"Time":"2026-01-01T10:00:10Z","Action":"fail","Package":"github.com/windows-machine-config/wmco/internal/a","Test":"TestQuick","Elapsed":0.5}
{"Time":"2026-01-01T10:00:10Z","Action":"fail","Package":"github.com/windows-machine-config/wmco/internal/a","Elapsed":9.5}
not an event
{"Time":"2026-01-01T10:01:10Z","Action":"pass","Package":"github.com/windows-machine-config/wmco/internal/b","Elapsed":60}
`

const actions = `[
{"Mode":"build","Package":"net","CmdReal":1,"CmdUser":2000000000,"CmdSys":500000000},
{"Mode":"build","Package":"cached","Cmd":null},
{"Mode":"link","Package":"a.test","CmdReal":1,"CmdUser":1000000000,"CmdSys":0}]`

func TestTheTimesOfTheLastRuns(t *testing.T) {
	dir := fstest.MapFS{
		"quick.json":               {Data: []byte(events)},
		"quick-units.actions.json": {Data: []byte(actions)},
		"quick-race.actions.json":  {Data: []byte(actions)},
	}
	var out bytes.Buffer
	if err := run(dir, 1, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"make test (quick): 1m10s from the first package to the last, 1m10s of tests in 2 packages",
		"slowest packages", "internal/b", "1m0s",
		"internal/a.TestSlow", "8.0s",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	if line := lineOf(out.String(), "quick-units"); !strings.HasSuffix(strings.Join(strings.Fields(line), " "),
		"quick-units 1 2.5s 1 1.0s 1") {
		t.Errorf("what was compiled is reported as %q", line)
	}
	for _, unwanted := range []string{"TestQuick", "TestSlow/part", "cached"} {
		if strings.Contains(out.String(), unwanted) {
			t.Errorf("%q is shown:\n%s", unwanted, out.String())
		}
	}
}

func lineOf(text, start string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, start) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

func TestWithoutARunItSaysHowToMakeOne(t *testing.T) {
	if err := run(fstest.MapFS{}, 1, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "make test") {
		t.Errorf("got %v, want an error that names make test", err)
	}
}

func TestABrokenListOfActionsIsNamed(t *testing.T) {
	dir := fstest.MapFS{"rest.json": {Data: []byte(events)}, "rest-x.actions.json": {Data: []byte("[")}}
	if err := run(dir, 1, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "rest-x.actions.json") {
		t.Errorf("got %v, want an error that names the file", err)
	}
}
