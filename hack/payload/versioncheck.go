package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// programTimeout is generous: a program that hangs under Wine never ends.
const programTimeout = 30 * time.Second

// ProgramRunner runs Windows programs.
type ProgramRunner interface {
	// RunProgram runs a program and returns the output of stdout and stderr, or an error unless the program ends with
	// status 0.
	RunProgram(ctx context.Context, program string, arguments []string) (string, error)
}

// wine runs programs by a command, hack/wine-run.
type wine struct{ command string }

// newWine returns an error with the reason if programs cannot be run.
func newWine(ctx context.Context, command string) (*wine, error) {
	if command == "" {
		return nil, errors.New("no command to run Windows programs was given")
	}
	if out, err := exec.CommandContext(ctx, command).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w", lastLine(string(out)), err)
	}
	return &wine{command: command}, nil
}

func (w *wine) RunProgram(ctx context.Context, program string, arguments []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, programTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, w.command, append([]string{program}, arguments...)...)
	command.WaitDelay = time.Second
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer within %s", programTimeout)
	}
	return strings.ReplaceAll(out.String(), "\r\n", "\n"), err
}

// VersionCheck describes how the version of an executable was verified.
type VersionCheck struct {
	// Method is a constant below.
	Method string `json:"way"`
	// Detail is the answer, or the number of variables found.
	Detail string `json:"detail"`
	// NotRunReason is the reason why the program was not run, or did not answer.
	NotRunReason string `json:"notAsked,omitempty"`
}

// Methods to verify a version, the best first.
const (
	methodAnswer    = "answer under Wine"
	methodVariables = "linked into the executable"
	methodBuildInfo = "build information only"
)

// verifyVersion verifies that an executable reports the true version. A program that reports another version is an
// error (OCPBUGS-7843). Variables are checked in any case, because the output may lack some of them.
func verifyVersion(ctx context.Context, runner ProgramRunner, unavailable error, file string, e Executable, v Version) (VersionCheck, error) {
	count, err := checkVariables(file, e, v)
	if err != nil {
		return VersionCheck{}, err
	}
	proof := VersionCheck{Method: methodVariables, Detail: fmt.Sprintf("%d of %d version variables", count, count)}
	if count == 0 {
		proof = VersionCheck{Method: methodBuildInfo, Detail: "the program keeps no version"}
	}
	switch {
	case e.Question == nil:
		proof.NotRunReason = "it has no command that tells its version"
		return proof, nil
	case runner == nil:
		proof.NotRunReason = unavailable.Error()
		return proof, nil
	}
	want, err := executeTemplate(e.Question.Answer, v)
	if err != nil {
		return VersionCheck{}, fmt.Errorf("%s: %w", e.Output, err)
	}
	answer, err := runner.RunProgram(ctx, file, e.Question.Arguments)
	if line, ok := lineWith(answer, want); ok {
		return VersionCheck{Method: methodAnswer, Detail: line}, nil
	}
	if err == nil && strings.TrimSpace(answer) != "" {
		return VersionCheck{}, fmt.Errorf("%s: asked for its version it says %q, and %q must be in it: are the variables in the table right?",
			e.Output, strings.TrimSpace(answer), want)
	}
	proof.NotRunReason = "it does not start under Wine: no answer"
	if err != nil {
		proof.NotRunReason = fmt.Sprintf("it does not start under Wine: %v: %s", err, lastLine(answer))
	}
	return proof, nil
}

func lineWith(text, part string) (string, bool) {
	for line := range strings.Lines(text) {
		// The version must end here: v1.3 is not v1.30, nor v1.3-dirty.
		if _, rest, ok := strings.Cut(line, part); ok && (rest == "" || strings.ContainsAny(rest[:1], " \t\r\n,;)(\"'")) {
			return strings.TrimSpace(line), true
		}
	}
	return "", false
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	line := strings.TrimSpace(lines[len(lines)-1])
	return line[:min(len(line), 200)]
}
