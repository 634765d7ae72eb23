package cliutil

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"testing"
)

// newGreeter is a program with the flag -to that prints a greeting and returns the failure.
func newGreeter(failure error) Program[string] {
	return Program[string]{Name: "greet",
		Parse: func(arguments []string) (string, error) {
			flags := flag.NewFlagSet("greet", flag.ContinueOnError)
			to := flags.String("to", "you", "the one to greet")
			err := ParseFlags(flags, arguments)
			return *to, err
		},
		Run: func(_ context.Context, to string, log io.Writer) error {
			fmt.Fprintln(log, "hello", to)
			return failure
		},
	}
}

func TestProgram_ExitsWithStatusAndOneSentence(t *testing.T) {
	for name, test := range map[string]struct {
		arguments      []string
		failure        error
		status         int
		stdout, stderr string
	}{
		"what works ends with 0":             {arguments: []string{"-to", "all"}, stdout: "hello all\n"},
		"what fails says why":                {failure: errors.New("no voice"), status: 1, stdout: "hello you\n", stderr: "greet: no voice\n"},
		"several faults are in one sentence": {failure: errors.Join(errors.New("one"), errors.New("two")), status: 1, stdout: "hello you\n", stderr: "greet: one; two\n"},
		"an unknown flag runs nothing":       {arguments: []string{"-from", "me"}, status: 1, stderr: "greet: flag provided but not defined: -from\n"},
		"a word that is no flag runs nothing": {arguments: []string{"me"}, status: 1,
			stderr: "greet: unexpected arguments, which are not flags: [\"me\"]\n"},
		"a question for the flags is no failure": {arguments: []string{"-help"}},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			status := newGreeter(test.failure).run(t.Context(), test.arguments, &stdout, &stderr)
			if status != test.status || stdout.String() != test.stdout || stderr.String() != test.stderr {
				t.Errorf("got status %d, output %q, error %q", status, stdout.String(), stderr.String())
			}
		})
	}
}
