// Package question has the questions about a real Windows whose answers the operator's code assumes, and judges what the witness
// found. It asks nothing itself, so that its tests run anywhere.
package question

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Verdict is what an answer means for an assumption.
type Verdict string

// Verdicts.
const (
	Holds        Verdict = "holds"
	Contradicted Verdict = "contradicted"
	Unknown      Verdict = "not known" // this machine cannot show it, or not now
)

// Question is one assumption.
type Question struct {
	ID, Asks, Assumes string
	// Relies is the file that is wrong if the assumption is, and a name in it.
	Relies Reliance
	// Changes: the machine is changed for the answer, and changed back.
	Changes bool

	empty func() any
	judge func(found, before any) (Verdict, string)
}

// ask makes a question whose evidence is a T. Evidence has no addresses, and no names but those that Windows or Kubernetes
// give. The evidence from before the machine was a node is nil if there is none.
func ask[T any](id, asks, assumes string, relies Reliance, judge func(found, before *T) (Verdict, string)) Question {
	return Question{ID: id, Asks: asks, Assumes: assumes, Relies: relies, empty: func() any { return new(T) },
		judge: func(found, before any) (Verdict, string) {
			now, _ := found.(*T)
			earlier, _ := before.(*T)
			return judge(now, earlier)
		}}
}

// Evidence returns an empty one, to be filled.
func (q Question) Evidence() any { return q.empty() }

// Reliance is a place in this repository.
type Reliance struct{ File, Name string }

func (r Reliance) String() string { return r.File + " (" + r.Name + ")" }

// Document is the answer to one question, as a file.
type Document struct {
	Schema   int             `json:"schema"`
	Question string          `json:"question"`
	Asks     string          `json:"asks"`
	Assumes  string          `json:"assumes"`
	ReliesOn string          `json:"reliedOnBy"`
	Windows  string          `json:"windows"` // "Windows Server 2025 Datacenter, 10.0.26100.6899"
	Verdict  Verdict         `json:"verdict"`
	Answer   string          `json:"answer"`
	Evidence json.RawMessage `json:"evidence,omitempty"`
}

// schema is the version of the format.
const schema = 1

// Answer makes the document of a question. A failure to find evidence leaves it not known.
func (q Question) Answer(windows string, found, before any, failure error) (Document, error) {
	d := Document{Schema: schema, Question: q.ID, Asks: q.Asks, Assumes: q.Assumes, ReliesOn: q.Relies.String(), Windows: windows}
	var err error
	if failure == nil {
		d.Verdict, d.Answer = q.judge(found, before)
		d.Evidence, err = json.Marshal(found)
	} else {
		d.Verdict, d.Answer = Unknown, failure.Error()
	}
	return d, err
}

// Before returns the evidence of an earlier document, nil if there is none in the folder.
func (q Question) Before(folder fs.FS) (any, error) {
	d, err := q.Read(folder)
	if os.IsNotExist(err) || err == nil && len(d.Evidence) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := q.Evidence()
	if err := json.Unmarshal(d.Evidence, found); err != nil {
		return nil, fmt.Errorf("%s: %w", q.file(), err)
	}
	return found, nil
}

func (q Question) file() string { return q.ID + ".json" }

// Read reads a document, and refuses one that today's witness would not write.
func (q Question) Read(folder fs.FS) (Document, error) {
	data, err := fs.ReadFile(folder, q.file())
	if err != nil {
		return Document{}, err
	}
	var d Document
	if err := json.Unmarshal(data, &d); err != nil {
		return Document{}, fmt.Errorf("%s: %w", q.file(), err)
	}
	if d.Schema != schema || d.Question != q.ID || d.Assumes != q.Assumes {
		return Document{}, fmt.Errorf("%s is the answer to another question: run the witness again", q.file())
	}
	if !slices.Contains([]Verdict{Holds, Contradicted, Unknown}, d.Verdict) {
		return Document{}, fmt.Errorf("%s: %q is no verdict", q.file(), d.Verdict)
	}
	return d, nil
}

// Write writes the document to a folder.
func (d Document) Write(folder string) error {
	data, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, d.Question+".json"), append(data, '\n'), 0o644)
}

// String is the document in a line, and for a contradiction another one that names the file that relies on the assumption.
func (d Document) String() string {
	line := fmt.Sprintf("%-4s%-13s%s", d.Question, d.Verdict, d.Answer)
	if d.Verdict == Contradicted {
		line += fmt.Sprintf("\n    %s relies on: %s", d.ReliesOn, d.Assumes)
	}
	return line
}
