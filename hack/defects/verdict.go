package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// verdict is the result for a defect.
type verdict string

const (
	caught   verdict = "caught"
	survived verdict = "SURVIVED"
	// broken means that the row must be fixed. It is no result about the tests.
	broken verdict = "BROKEN"
)

// testRun is the result of `go test` for a package.
type testRun struct {
	// results maps tests to "pass", "fail" or "skip".
	results map[string]string
	// problem is the reason why tests ended other than by their assertions, or "".
	problem string
}

// testTimeout is the time limit for one package.
const testTimeout = 10 * time.Minute

// quickBuild contains flags for programs that run once, for a moment: compiler and linker need most of a row's
// time.
var quickBuild = []string{"-vet=off", "-gcflags=-N -l", "-ldflags=-s -w"}

// runTests runs some tests of a package in a directory, with an overlay unless it is empty.
func (s *seeder) runTests(ctx context.Context, directory, name string, tests []string, overlay string) testRun {
	arguments := append([]string{"test", "-json", "-timeout", testTimeout.String(), "-run", runPattern(tests)},
		quickBuild...)
	if overlay != "" {
		arguments = append(arguments, "-overlay", overlay)
	}
	arguments = append(arguments, "./"+name)
	if hasRapidTests(filepath.Join(directory, filepath.FromSlash(name))) {
		arguments = append(arguments, "-rapid.nofailfile") // a failing input must not be replayed in later runs
	}
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = directory
	command.Env = append(os.Environ(), "PWD="+directory)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	result := readEvents(stdout.Bytes())
	if result.problem == "" && len(result.results) == 0 && err != nil {
		result.problem = fmt.Sprintf("%v: %s", err, firstLine(stderr.String()))
	}
	return result
}

// runPattern returns the pattern for -run that matches exactly these tests.
func runPattern(tests []string) string {
	var patterns []string
	for _, test := range tests {
		var parts []string
		for part := range strings.SplitSeq(testName(test), "/") {
			parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
		}
		patterns = append(patterns, strings.Join(parts, "/"))
	}
	return strings.Join(patterns, "|")
}

// testName returns the name that package testing writes for a test: a table names subtests by sentences.
func testName(test string) string { return strings.ReplaceAll(test, " ", "_") }

func hasRapidTests(folder string) bool {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	return err == nil && slices.ContainsFunc(files, func(file string) bool {
		data, err := os.ReadFile(file)
		return err == nil && bytes.Contains(data, []byte(`"pgregory.net/rapid"`))
	})
}

// event is one line of `go test -json`. Source: `go doc test2json`, and `go help buildjson`.
type event struct {
	Action, Test, Output, FailedBuild string
}

// panics matches the beginning of the runtime's message about the end of a program.
var panics = regexp.MustCompile(`^(panic|fatal error): `)

func readEvents(output []byte) testRun {
	run := testRun{results: map[string]string{}}
	var build string
	for line := range bytes.Lines(output) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		switch {
		case e.Action == "build-output" && build == "" && !strings.HasPrefix(e.Output, "#"):
			build = firstLine(e.Output)
		case e.FailedBuild != "":
			run.problem = "it does not compile: " + build
		case e.Action == "output" && run.problem == "" && panics.MatchString(e.Output):
			run.problem = "it ends with a " + firstLine(e.Output)
		case e.Test != "" && slices.Contains([]string{"pass", "fail", "skip"}, e.Action):
			run.results[e.Test] = e.Action
		}
	}
	return run
}

// mustPass returns the problem of a run in which the tests must pass, or "".
func (t testRun) mustPass(tests []string) string {
	if t.problem != "" {
		return t.problem
	}
	for _, test := range tests {
		if result := t.results[testName(test)]; result != "pass" {
			return test + describeResult(result)
		}
	}
	return ""
}

// computeVerdict verifies that each of the tests has failed by its own assertion.
func (t testRun) computeVerdict(tests []string) (v verdict, reason string) {
	if t.problem != "" {
		return broken, ": " + t.problem
	}
	for _, test := range tests {
		switch result := t.results[testName(test)]; result {
		case "fail":
		case "pass":
			return survived, ": " + test + describeResult(result)
		default:
			return broken, ": " + test + describeResult(result)
		}
	}
	return caught, ""
}

func describeResult(result string) string {
	switch result {
	case "pass":
		return " passes"
	case "fail":
		return " fails"
	case "skip":
		return " is skipped"
	}
	return " was not run: there is no such test"
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
