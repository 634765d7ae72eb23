// Package question contains the questions about the operator's assumptions about Windows, and judges the evidence
// of the witness. The package itself queries nothing, so the tests run anywhere.
package question

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Verdict is the result of a question for the assumption.
type Verdict string

// Verdicts.
const (
	Holds        Verdict = "holds"
	Contradicted Verdict = "contradicted"
	Unknown      Verdict = "not known" // not observable on this machine, or not now
)

// Question is a question about one assumption.
type Question struct {
	ID, Text, Assumes string
	// Relies is a file that relies on the assumption, and a name in it.
	Relies Reliance
	// Changes is true if the machine is temporarily changed to find the answer.
	Changes bool

	empty func() any
	judge func(found, before any) (Verdict, string)
}

// newQuestion returns a question with evidence of type T. Evidence contains no addresses, and only names that Windows
// or Kubernetes define. The evidence from before the machine was a node may be nil.
func newQuestion[T any](id, text, assumes string, relies Reliance, judge func(found, before *T) (Verdict, string)) Question {
	return Question{ID: id, Text: text, Assumes: assumes, Relies: relies, empty: func() any { return new(T) },
		judge: func(found, before any) (Verdict, string) {
			now, _ := found.(*T)
			earlier, _ := before.(*T)
			return judge(now, earlier)
		}}
}

// Evidence returns empty evidence to be filled by a probe.
func (q Question) Evidence() any { return q.empty() }

// Reliance is a position in this repository.
type Reliance struct{ File, Name string }

func (r Reliance) String() string { return r.File + " (" + r.Name + ")" }

// Document is the answer to one question, as a file.
type Document struct {
	Schema       int             `json:"schema"`
	Question     string          `json:"question"`
	QuestionText string          `json:"asks"`
	Assumes      string          `json:"assumes"`
	ReliesOn     string          `json:"reliedOnBy"`
	Windows      string          `json:"windows"` // "Windows Server 2025 Datacenter, 10.0.26100.6899"
	Verdict      Verdict         `json:"verdict"`
	Answer       string          `json:"answer"`
	Evidence     json.RawMessage `json:"evidence,omitempty"`
}

// schema is the version of the document format.
const schema = 1

// Answer returns the document of a question. If no evidence was found, the verdict is Unknown.
func (q Question) Answer(windows string, found, before any, failure error) (Document, error) {
	d := Document{Schema: schema, Question: q.ID, QuestionText: q.Text, Assumes: q.Assumes, ReliesOn: q.Relies.String(), Windows: windows}
	var err error
	if failure == nil {
		d.Verdict, d.Answer = q.judge(found, before)
		d.Evidence, err = json.Marshal(found)
	} else {
		d.Verdict, d.Answer = Unknown, failure.Error()
	}
	return d, err
}

// Before returns the evidence of an earlier document, or nil if the directory does not contain it.
func (q Question) Before(dir fs.FS) (any, error) {
	d, err := q.Read(dir)
	if os.IsNotExist(err) || err == nil && len(d.Evidence) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := q.Evidence()
	if err := json.Unmarshal(d.Evidence, found); err != nil {
		return nil, fmt.Errorf("%s: %w", q.fileName(), err)
	}
	return found, nil
}

func (q Question) fileName() string { return q.ID + ".json" }

// Read reads a document, and returns an error for a document that the current witness would not write.
func (q Question) Read(dir fs.FS) (Document, error) {
	data, err := fs.ReadFile(dir, q.fileName())
	if err != nil {
		return Document{}, err
	}
	var d Document
	if err := json.Unmarshal(data, &d); err != nil {
		return Document{}, fmt.Errorf("%s: %w", q.fileName(), err)
	}
	if d.Schema != schema || d.Question != q.ID || d.Assumes != q.Assumes {
		return Document{}, fmt.Errorf("%s is the answer to another question: run the witness again", q.fileName())
	}
	if !slices.Contains([]Verdict{Holds, Contradicted, Unknown}, d.Verdict) {
		return Document{}, fmt.Errorf("%s: %q is no verdict", q.fileName(), d.Verdict)
	}
	return d, nil
}

// Write writes the document to a directory.
func (d Document) Write(dir string) error {
	data, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, d.Question+".json"), append(data, '\n'), 0o644)
}

// String returns the document in one line. A contradiction has a second line with the file that relies on the
// assumption.
func (d Document) String() string {
	line := fmt.Sprintf("%-4s%-13s%s", d.Question, d.Verdict, d.Answer)
	if d.Verdict == Contradicted {
		line += fmt.Sprintf("\n    %s relies on: %s", d.ReliesOn, d.Assumes)
	}
	return line
}
