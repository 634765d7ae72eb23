// Command witness answers, on a Windows machine, what the operator's code assumes about Windows: one JSON document for each
// question of package question. It shares no code with the operator, so it does not repeat the operator's mistakes.
//
// It only looks, unless -change allows it to make and delete again: files in a temporary folder, and an HNS network with the
// name wmco-witness. It needs an administrator. Some answers need its run in a session of the SSH server, some a node,
// and some documents from before the machine was a node (-before).
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

// options are the flags.
type options struct {
	out, before, only string
	change            bool
}

// patience is how long an answer may take: a part of Windows may never answer.
const patience = 3 * time.Minute

func main() {
	var o options
	flag.StringVar(&o.out, "out", "", "`folder` for the documents; none: only lines are printed")
	flag.StringVar(&o.before, "before", "", "`folder` with documents from before the machine was a node")
	flag.StringVar(&o.only, "only", "", "`questions` to ask, say N1,A3; all, if none is named")
	flag.BoolVar(&o.change, "change", false, "ask also what changes the machine for a moment")
	flag.Parse()
	os.Exit(run(o, os.Stdout, machine()))
}

// subject is what questions are asked about.
type subject struct {
	name string // of the Windows
	// probes fill the evidence of questions.
	probes map[string]func(found any) error
}

// run returns the exit status: 1 if an answer contradicts an assumption, 2 if the questions cannot be asked.
func run(o options, stdout io.Writer, s subject) int {
	contradicted, err := askAll(o, stdout, s)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "witness:", err)
		return 2
	case contradicted:
		return 1
	}
	return 0
}

func askAll(o options, stdout io.Writer, s subject) (contradicted bool, err error) {
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
		d, err := answer(q, o, s)
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

func answer(q question.Question, o options, s subject) (question.Document, error) {
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
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case err := <-done:
		if err != nil { // the name of the temporary folder has the user's
			err = errors.New(strings.ReplaceAll(err.Error(), os.TempDir(), "TEMP"))
		}
		return q.Answer(s.name, found, before, err)
	case <-late.C:
		return q.Answer(s.name, nil, nil, fmt.Errorf("no answer from Windows for %s", patience))
	}
}
