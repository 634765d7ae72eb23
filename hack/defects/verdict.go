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
	// trouble is the reason why tests ended other than by their assertions, or "".
	trouble string
}

// testLimit is the time limit for one package.
const testLimit = 10 * time.Minute

// quickBuild contains flags for programs that run once, for a moment: compiler and linker need most of a row's
// time.
var quickBuild = []string{"-vet=off", "-gcflags=-N -l", "-ldflags=-s -w"}

// test runs some tests of a package in a directory, with an overlay unless it is empty.
func (s *seeder) test(ctx context.Context, directory, name string, tests []string, overlay string) testRun {
	arguments := append([]string{"test", "-json", "-timeout", testLimit.String(), "-run", runPattern(tests)},
		quickBuild...)
	if overlay != "" {
		arguments = append(arguments, "-overlay", overlay)
	}
	arguments = append(arguments, "./"+name)
	if usesRapid(filepath.Join(directory, filepath.FromSlash(name))) {
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
	if result.trouble == "" && len(result.results) == 0 && err != nil {
		result.trouble = fmt.Sprintf("%v: %s", err, firstLine(stderr.String()))
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

func usesRapid(folder string) bool {
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
			run.trouble = "it does not compile: " + build
		case e.Action == "output" && run.trouble == "" && panics.MatchString(e.Output):
			run.trouble = "it ends with a " + firstLine(e.Output)
		case e.Test != "" && slices.Contains([]string{"pass", "fail", "skip"}, e.Action):
			run.results[e.Test] = e.Action
		}
	}
	return run
}

// mustPass returns the problem of a run in which the tests must pass, or "".
func (t testRun) mustPass(tests []string) string {
	if t.trouble != "" {
		return t.trouble
	}
	for _, test := range tests {
		if result := t.results[testName(test)]; result != "pass" {
			return test + said(result)
		}
	}
	return ""
}

// judge verifies that each of the tests has failed by its own assertion.
func (t testRun) judge(tests []string) (v verdict, why string) {
	if t.trouble != "" {
		return broken, ": " + t.trouble
	}
	for _, test := range tests {
		switch result := t.results[testName(test)]; result {
		case "fail":
		case "pass":
			return survived, ": " + test + said(result)
		default:
			return broken, ": " + test + said(result)
		}
	}
	return caught, ""
}

func said(result string) string {
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
