package hosttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Report contains the suite's results in an environment. It contains no times or machine names, so that repeated runs
// have equal reports.
type Report struct {
	Environment Environment `json:"environment"`
	System      string      `json:"system"` // "Windows Server 2022 Datacenter, 10.0.20348.681"
	Results     []Result    `json:"results"`
}

// Result is the result for one behavior.
type Result struct {
	Operation string `json:"operation"`
	Behavior  string `json:"behavior"` // the sentence
	Result    Status `json:"result"`
	Reason    string `json:"reason,omitempty"`
}

// ID returns the ID of the behavior.
func (r Result) ID() string { return r.Operation + ": " + r.Behavior }

func (r *Report) addResult(b Behavior, standing Status, reason string) {
	r.Results = append(r.Results, Result{Operation: b.Operation, Behavior: b.Sentence, Result: standing, Reason: reason})
}

// Of returns the result of the behavior with this ID, or NotRun if there is none.
func (r Report) Of(id string) Result {
	for _, result := range r.Results {
		if result.ID() == id {
			return result
		}
	}
	return Result{Result: NotRun}
}

// Merge returns the report updated with the results of a later run on the same machine. Results that the later run
// did not run are kept.
func (r Report) Merge(later Report) Report {
	merged := r
	merged.Results = slices.Clone(r.Results)
	for _, result := range later.Results {
		i := slices.IndexFunc(merged.Results, func(known Result) bool { return known.ID() == result.ID() })
		switch {
		case i < 0:
			merged.Results = append(merged.Results, result)
		case result.Result != NotRun:
			merged.Results[i] = result
		}
	}
	return merged
}

// Difference returns the differences between two reports, one line per behavior.
func (r Report) Difference(other Report) []string {
	var lines []string
	for _, result := range r.Results {
		if now := other.Of(result.ID()); now.Result != result.Result || now.Reason != result.Reason {
			lines = append(lines, fmt.Sprintf("%s: %s, now %s", result.ID(), result.formatResult(), now.formatResult()))
		}
	}
	for _, result := range other.Results {
		if !slices.ContainsFunc(r.Results, func(known Result) bool { return known.ID() == result.ID() }) {
			lines = append(lines, fmt.Sprintf("%s: new, %s", result.ID(), result.formatResult()))
		}
	}
	return lines
}

func (r Result) formatResult() string {
	if r.Reason == "" {
		return string(r.Result)
	}
	return fmt.Sprintf("%s (%s)", r.Result, r.Reason)
}

// ReadReport reads a report from a file.
func ReadReport(files fs.FS, name string) (Report, error) {
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return Report{}, err
	}
	var r Report
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return Report{}, fmt.Errorf("%s is not a report of the contract suite: %w", name, err)
	}
	return r, nil
}

// Write writes the report to a file.
func (r Report) Write(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
