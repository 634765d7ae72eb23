package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// testRun is what `go test -json` has said.
type testRun struct {
	first, last time.Time
	packages    map[string]time.Duration
	tests       map[string]time.Duration // test functions, by "package.Test"
}

func (r *testRun) wall() time.Duration { return r.last.Sub(r.first) }

// readTests reads a stream of events. A package that is tested twice, with another choice of tests or with the race
// detector, counts with both.
func readTests(dir fs.FS, name string) (*testRun, error) {
	file, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r := &testRun{packages: map[string]time.Duration{}, tests: map[string]time.Duration{}}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var event struct {
			Time                  time.Time
			Action, Package, Test string
			Elapsed               float64
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil || event.Time.IsZero() {
			continue // what a compiler has said, say
		}
		if r.first.IsZero() {
			r.first = event.Time
		}
		r.last = event.Time
		if event.Action != "pass" && event.Action != "fail" {
			continue
		}
		took := time.Duration(event.Elapsed * float64(time.Second))
		switch {
		case event.Test == "":
			r.packages[event.Package] += took
		case !strings.Contains(event.Test, "/"):
			r.tests[event.Package+"."+event.Test] += took
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return r, nil
}

// build is what one `go test` has compiled and linked: what it found in its cache is not in it.
type build struct {
	name     string
	compiled map[string]time.Duration // processor time, by import path
	links    int
	linking  time.Duration
}

func (b build) compiling() time.Duration { return total(b.compiled) }

func readBuilds(dir fs.FS, pattern string) ([]build, error) {
	names, err := fs.Glob(dir, pattern)
	if err != nil {
		return nil, err
	}
	var builds []build
	for _, name := range names {
		data, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		var actions []struct {
			Mode, Package                 string
			CmdReal, CmdUser, CmdSys, Cmd any
		}
		if err := json.Unmarshal(data, &actions); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		b := build{name: strings.TrimSuffix(name, ".actions.json"), compiled: map[string]time.Duration{}}
		for _, a := range actions {
			took := duration(a.CmdUser) + duration(a.CmdSys)
			switch {
			case took == 0:
			case a.Mode == "build":
				b.compiled[a.Package] += took
			case a.Mode == "link":
				b.links++
				b.linking += took
			}
		}
		builds = append(builds, b)
	}
	slices.SortFunc(builds, func(x, y build) int { return strings.Compare(x.name, y.name) })
	return builds, nil
}

// duration returns a number of nanoseconds, or nothing.
func duration(v any) time.Duration {
	n, _ := v.(float64)
	return time.Duration(n)
}
