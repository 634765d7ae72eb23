package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// scan runs govulncheck.
type scan struct {
	scanner   string // the program
	directory string // of the module that is scanned
	database  string
}

// finding is a vulnerability in something that is called.
type finding struct {
	id, summary string
	module      string // with the version
	fixed       string // version; empty when there is none
	path        []string
}

// String says all in two lines.
func (f finding) String() string {
	fixed := "not fixed yet"
	if f.fixed != "" {
		fixed = "fixed in " + f.fixed
	}
	return fmt.Sprintf("%s in %s, %s: %s\n\t%s", f.id, f.module, fixed, f.summary, strings.Join(f.path, " calls "))
}

// run scans a target and returns what is called, by identifier.
func (s scan) run(ctx context.Context, t target) ([]finding, error) {
	command := exec.CommandContext(ctx, s.scanner, "-format", "json", "-db", s.database, t.pattern)
	command.Dir = s.directory
	command.Env = append(os.Environ(), "GOOS="+t.goos, "GOARCH=amd64", "CGO_ENABLED=0")
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", s.scanner, err, strings.TrimSpace(errs.String()))
	}
	return parse(&out)
}

// message is what govulncheck writes, one after the other; each has one field.
type message struct {
	Config *struct {
		Scanner string `json:"scanner_name"`
	} `json:"config"`
	OSV *struct {
		ID      string `json:"id"`
		Summary string `json:"summary"`
	} `json:"osv"`
	Finding *struct {
		OSV   string  `json:"osv"`
		Fixed string  `json:"fixed_version"`
		Trace []frame `json:"trace"`
	} `json:"finding"`
}

// frame is a step on the way to what is vulnerable, which comes first. Without a function it says only that the module
// is there.
type frame struct {
	Module   string `json:"module"`
	Version  string `json:"version"`
	Package  string `json:"package"`
	Receiver string `json:"receiver"`
	Function string `json:"function"`
}

func (f frame) String() string {
	if f.Receiver != "" {
		return fmt.Sprintf("%s.(%s).%s", f.Package, f.Receiver, f.Function)
	}
	return f.Package + "." + f.Function
}

// parse reads govulncheck's findings, each vulnerability once. What is only there and not called is none.
func parse(r io.Reader) ([]finding, error) {
	decoder := json.NewDecoder(r)
	summaries, byID, begun := map[string]string{}, map[string]finding{}, false
	for {
		var m message
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the output of govulncheck: %w", err)
		}
		begun = begun || m.Config != nil
		if m.OSV != nil {
			summaries[m.OSV.ID] = m.OSV.Summary
		}
		if m.Finding == nil || len(m.Finding.Trace) == 0 || m.Finding.Trace[0].Function == "" {
			continue
		}
		at := m.Finding.Trace[0]
		f := finding{id: m.Finding.OSV, module: at.Module + "@" + at.Version, fixed: m.Finding.Fixed}
		for _, step := range slices.Backward(m.Finding.Trace) {
			f.path = append(f.path, step.String())
		}
		if known, is := byID[f.id]; !is || len(f.path) < len(known.path) {
			byID[f.id] = f
		}
	}
	if !begun {
		return nil, errors.New("govulncheck printed nothing")
	}
	var found []finding
	for id, f := range byID {
		f.summary = summaries[id]
		found = append(found, f)
	}
	slices.SortFunc(found, func(a, b finding) int { return strings.Compare(a.id, b.id) })
	return found, nil
}
