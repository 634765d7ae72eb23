// Command witness checks, on a Windows machine, the assumptions of the operator's code about Windows. It writes one
// JSON document for each question of package question. It shares no code with the operator, so it does not repeat
// the operator's mistakes.
//
// By default the witness only reads. With -change, it also creates and deletes files in a temporary directory, and
// an HNS network with the name wmco-witness. It must run as an administrator. Some questions require a session of
// the SSH server, some a node, and some documents from before the machine was a node (-before).
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/test/witness/question"
)

// options contains the flags.
type options struct {
	out, before, only string
	change            bool
}

// probeTimeout is the maximum time for an answer, because a part of Windows may never respond.
const probeTimeout = 3 * time.Minute

func main() {
	var o options
	flag.StringVar(&o.out, "out", "", "`folder` for the documents; none: only lines are printed")
	flag.StringVar(&o.before, "before", "", "`folder` with documents from before the machine was a node")
	flag.StringVar(&o.only, "only", "", "`questions` to ask, say N1,A3; all, if none is named")
	flag.BoolVar(&o.change, "change", false, "ask also what changes the machine for a moment")
	flag.Parse()
	os.Exit(run(o, os.Stdout, newSubject()))
}

// subject is the Windows machine that the questions are about.
type subject struct {
	name string // name of the Windows version
	// probes maps question IDs to functions that fill the evidence.
	probes map[string]func(found any) error
}

// run returns the exit status: 1 if an answer contradicts an assumption, 2 if the questions cannot be answered.
func run(o options, stdout io.Writer, s subject) int {
	contradicted, err := answerAllQuestions(o, stdout, s)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "witness:", err)
		return 2
	case contradicted:
		return 1
	}
	return 0
}

func answerAllQuestions(o options, stdout io.Writer, s subject) (contradicted bool, err error) {
	if s.probes == nil {
		return false, errors.New("it runs on Windows only")
	}
	if o.out != "" {
		if err := os.MkdirAll(o.out, 0o755); err != nil {
			return false, err
		}
	}
	only := strings.FieldsFunc(o.only, func(r rune) bool { return r == ',' })
	for _, q := range question.All() {
		if len(only) > 0 && !slices.Contains(only, q.ID) {
			continue
		}
		d, err := answerQuestion(q, o, s)
		if err != nil {
			return contradicted, fmt.Errorf("%s: %w", q.ID, err)
		}
		if _, err := fmt.Fprintln(stdout, d); err != nil {
			return contradicted, err
		}
		if o.out != "" {
			if err := d.Write(o.out); err != nil {
				return contradicted, err
			}
		}
		contradicted = contradicted || d.Verdict == question.Contradicted
	}
	return contradicted, nil
}

func answerQuestion(q question.Question, o options, s subject) (question.Document, error) {
	var before any
	if o.before != "" {
		var err error
		if before, err = q.Before(os.DirFS(o.before)); err != nil {
			return question.Document{}, err
		}
	}
	if q.Changes && !o.change {
		return q.Answer(s.name, nil, nil, errors.New("not asked without -change"))
	}
	found, done := q.Evidence(), make(chan error, 1)
	go func() { done <- s.probes[q.ID](found) }()
	late := time.NewTimer(probeTimeout)
	defer late.Stop()
	select {
	case err := <-done:
		if err != nil { // the path of the temporary directory contains the user's name
			err = errors.New(strings.ReplaceAll(err.Error(), os.TempDir(), "TEMP"))
		}
		return q.Answer(s.name, found, before, err)
	case <-late.C:
		return q.Answer(s.name, nil, nil, fmt.Errorf("no answer from Windows for %s", probeTimeout))
	}
}
