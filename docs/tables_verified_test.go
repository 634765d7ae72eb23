package docs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/windows-machine-config/wmco/internal/host/hosttest"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/test/witness/question"
)

// The tables show the results of the host contract suite by environment. The suite writes its results to
// docs/verified: fake.json (the machine in memory), wine.json (the lab's test hosts), and files like
// windows-2022.json (a real Windows Server of that release). A missing file means that the suite was not run in
// that environment. A file must not contain results that the current suite cannot produce.
func TestGeneratedTablesOfWhatWasVerified(t *testing.T) {
	behaviors := append(hosttest.Behaviors(), hosttest.RebootBehaviors()...)
	columns, err := readColumns(os.DirFS("verified"), behaviors)
	if err != nil {
		t.Fatal(err)
	}
	answers, err := readAnswers(os.DirFS("verified"), columns)
	if err != nil {
		t.Fatal(err)
	}
	syncDocument(t, "verified/results.md", verifiedTables(behaviors, columns)+answerTable(answers, columns))
}

// column contains the results of one environment.
type column struct {
	environment hosttest.Environment
	title, file string
	system      string // prefix of the Windows product name
	report      hosttest.Report
	ran         bool // false: no report
}

// readColumns reads all existing reports.
func readColumns(files fs.FS, behaviors []hosttest.Behavior) ([]column, error) {
	columns := []column{
		{environment: hosttest.Fake, title: "in memory", file: "fake.json"},
		{environment: hosttest.Wine, title: "Wine", file: "wine.json"},
	}
	for _, release := range support.WindowsReleases() {
		year := strings.TrimPrefix(release.Name, "Windows Server ")
		columns = append(columns, column{environment: hosttest.Windows, title: "Windows " + year, file: "windows-" + year + ".json", system: release.Name})
	}
	for i, c := range columns {
		report, err := hosttest.ReadReport(files, c.file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = checkReport(report, c.environment, behaviors)
		}
		if err == nil && !strings.HasPrefix(report.System, c.system) {
			err = fmt.Errorf("the results come from %q", report.System)
		}
		if err != nil {
			return nil, fmt.Errorf("docs/verified/%s: %w", c.file, err)
		}
		columns[i].report, columns[i].ran = report, true
	}
	return columns, nil
}

// possibleStatuses returns the standings that the suite produces in an environment. A failure is listed only for a real
// Windows. Elsewhere, a failure is a mistake of this repository, which must be fixed and not documented.
func possibleStatuses(where hosttest.Environment) []hosttest.Status {
	switch where {
	case hosttest.Fake:
		return []hosttest.Status{hosttest.Simulated}
	case hosttest.Wine:
		return []hosttest.Status{hosttest.Verified, hosttest.Emulated, hosttest.FakeOnly, hosttest.Differs, hosttest.NotRun}
	}
	return []hosttest.Status{hosttest.Verified, hosttest.NotRun, hosttest.Failed}
}

// checkReport reports results that the current suite would not write.
func checkReport(report hosttest.Report, where hosttest.Environment, behaviors []hosttest.Behavior) error {
	if report.Environment != where {
		return fmt.Errorf("the results come from %q", report.Environment)
	}
	known := map[string]bool{}
	for _, b := range behaviors {
		known[b.ID()] = true
	}
	var wrong []error
	for _, result := range report.Results {
		switch {
		case !known[result.ID()]:
			wrong = append(wrong, fmt.Errorf("the suite no longer has the behavior %q, or has it twice: run the suite again",
				result.ID()))
		case !slices.Contains(possibleStatuses(where), result.Result):
			wrong = append(wrong, fmt.Errorf("the result of %q is %q: such a result cannot be committed", result.ID(), result.Result))
		case strings.ContainsAny(result.Reason, "|\n"):
			wrong = append(wrong, fmt.Errorf("the reason given for %q does not fit into a table cell", result.ID()))
		}
		known[result.ID()] = false
	}
	return errors.Join(wrong...)
}

// readAnswers reads the documents of test/witness, by the title of the Windows version and the question:
// docs/verified/windows-2022/N1.json.
func readAnswers(files fs.FS, columns []column) (map[string]map[string]question.Document, error) {
	answers := map[string]map[string]question.Document{}
	for _, c := range columns {
		dir, err := fs.Sub(files, strings.TrimSuffix(c.file, ".json"))
		if err != nil {
			return nil, err
		}
		answers[c.title] = map[string]question.Document{}
		for _, q := range question.All() {
			d, err := q.Read(dir)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil && (c.system == "" || !strings.HasPrefix(d.Windows, c.system)) {
				err = fmt.Errorf("%s comes from %q", q.ID, d.Windows)
			}
			if err != nil {
				return nil, fmt.Errorf("docs/verified, %s: %w", c.title, err)
			}
			answers[c.title][q.ID] = d
		}
	}
	return answers, nil
}

// answerTable returns the table of assumptions that the witness compares with Windows, and the results.
func answerTable(answers map[string]map[string]question.Document, columns []column) string {
	var b strings.Builder
	columns = slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return c.environment != hosttest.Windows })
	b.WriteString("\n### Answers of the witness\n\n| | assumption | used by |" + formatTitles(columns) + "\n|---|---|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, q := range question.All() {
		fmt.Fprintf(&b, "| %s | %s | `%s` |", q.ID, q.Assumes, q.Relies.File)
		for _, c := range columns {
			cell := "not run"
			if d, there := answers[c.title][q.ID]; there {
				cell = string(d.Verdict) + ": " + strings.NewReplacer("|", "/", "\n", " ", "`", "'").Replace(d.Answer)
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// verifiedTables returns the tables for docs/verified/results.md.
func verifiedTables(behaviors []hosttest.Behavior, columns []column) string {
	var b strings.Builder
	b.WriteString(formatEnvironments(columns))
	b.WriteString("\n### By operation\n\n| operation |" + formatTitles(columns) + "\n|---|" + strings.Repeat("---|",
		len(columns)) + "\n")
	for _, operation := range sortedOperations(behaviors) {
		fmt.Fprintf(&b, "| `%s` |", operation)
		for _, c := range columns {
			fmt.Fprintf(&b, " %s |", formatCounts(operation, behaviors, c))
		}
		b.WriteByte('\n')
	}
	b.WriteString(formatReasons(behaviors, columns))
	b.WriteString("\n### Every behavior\n\n| operation | behavior |" + formatTitles(columns) + "\n|---|---|" +
		strings.Repeat("---|", len(columns)) + "\n")
	for _, behavior := range behaviors {
		fmt.Fprintf(&b, "| `%s` | %s |", behavior.Operation, behavior.Sentence)
		for _, c := range columns {
			fmt.Fprintf(&b, " %s |", c.statusOf(behavior))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// formatEnvironments describes the environments of the suite's runs.
func formatEnvironments(columns []column) string {
	var b strings.Builder
	for _, c := range columns {
		machine := "**not run yet**"
		if c.ran {
			machine = "run on " + c.report.System
		}
		fmt.Fprintf(&b, "- %s: %s\n", c.title, machine)
	}
	return b.String()
}

func formatTitles(columns []column) string {
	var b strings.Builder
	for _, c := range columns {
		fmt.Fprintf(&b, " %s |", c.title)
	}
	return b.String()
}

// statusOf returns the standing of one behavior.
func (c column) statusOf(b hosttest.Behavior) hosttest.Status {
	if !c.ran {
		return hosttest.NotRun
	}
	return c.report.Of(b.ID()).Result
}

// sortedOperations returns the operations of a host, without duplicates and in order.
func sortedOperations(behaviors []hosttest.Behavior) []string {
	var known []string
	for _, operation := range hosttest.Operations() {
		if slices.ContainsFunc(behaviors, func(b hosttest.Behavior) bool { return b.Operation == operation }) {
			known = append(known, operation)
		}
	}
	return known
}

// formatCounts returns, for example, "3 verified, 1 fake only".
func formatCounts(operation string, behaviors []hosttest.Behavior, c column) string {
	counts := map[hosttest.Status]int{}
	for _, b := range behaviors {
		if b.Operation == operation {
			counts[c.statusOf(b)]++
		}
	}
	var parts []string
	for _, status := range []hosttest.Status{
		hosttest.Simulated, hosttest.Verified, hosttest.Emulated, hosttest.Differs, hosttest.FakeOnly,
		hosttest.Failed, hosttest.NotRun,
	} {
		if counts[status] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[status], status))
		}
	}
	return strings.Join(parts, ", ")
}

// formatReasons lists the behaviors that the environment itself did not show, with the reason.
func formatReasons(behaviors []hosttest.Behavior, columns []column) string {
	var b strings.Builder
	for _, c := range columns {
		type cause struct {
			status hosttest.Status
			reason string
		}
		var order []cause
		of := map[cause][]string{}
		for _, behavior := range behaviors {
			result := c.report.Of(behavior.ID())
			if !c.ran || result.Reason == "" {
				continue
			}
			key := cause{result.Result, result.Reason}
			if of[key] == nil {
				order = append(order, key)
			}
			if !slices.Contains(of[key], "`"+behavior.Operation+"`") {
				of[key] = append(of[key], "`"+behavior.Operation+"`")
			}
		}
		if len(order) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### Reasons for other results: %s\n\n| | reason | operations |\n|---|---|---|\n", c.title)
		for _, key := range order {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", key.status, key.reason, strings.Join(of[key], ", "))
		}
	}
	return b.String()
}

func exampleBehaviors() []hosttest.Behavior {
	return []hosttest.Behavior{
		{Operation: "Files.Write", Sentence: "a write replaces"},
		{Operation: "Files.Write", Sentence: "a write is exclusive"},
		{Operation: "Tree.Symlink", Sentence: "a link is followed"},
	}
}

func newReport(where hosttest.Environment, results ...hosttest.Result) hosttest.Report {
	return hosttest.Report{Environment: where, System: "Windows Server 2022", Results: results}
}

func TestVerifiedTables(t *testing.T) {
	columns := []column{
		{environment: hosttest.Wine, title: "Wine", ran: true, report: newReport(hosttest.Wine,
			hosttest.Result{Operation: "Files.Write", Behavior: "a write replaces", Result: hosttest.Verified},
			hosttest.Result{Operation: "Tree.Symlink", Behavior: "a link is followed", Result: hosttest.FakeOnly,
				Reason: "Wine has no links"},
		)},
		{environment: hosttest.Windows, title: "Windows"},
	}
	got := verifiedTables(exampleBehaviors(), columns)
	for _, want := range []string{
		"- Wine: run on Windows Server 2022\n- Windows: **not run yet**\n",
		"| `Files.Write` | 1 verified, 1 not run | 2 not run |\n",
		"| `Tree.Symlink` | 1 fake only | 1 not run |\n",
		"| fake only | Wine has no links | `Tree.Symlink` |\n",
		"| `Files.Write` | a write replaces | verified | not run |\n",
		"| `Files.Write` | a write is exclusive | not run | not run |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}

func TestCheckReport_ImpossibleResultsRejected(t *testing.T) {
	of := func(status hosttest.Status) hosttest.Result {
		return hosttest.Result{Operation: "Files.Write", Behavior: "a write replaces", Result: status}
	}
	for name, test := range map[string]struct {
		report hosttest.Report
		where  hosttest.Environment
		want   string
	}{
		"in memory nothing is verified": {newReport(hosttest.Fake, of(hosttest.Verified)), hosttest.Fake,
			"cannot be committed"},
		"under Wine nothing is simulated": {newReport(hosttest.Wine, of(hosttest.Simulated)), hosttest.Wine,
			"cannot be committed"},
		"a failure under Wine must be fixed": {newReport(hosttest.Wine, of(hosttest.Failed)), hosttest.Wine,
			"cannot be committed"},
		"a real Windows emulates nothing": {newReport(hosttest.Windows, of(hosttest.Emulated)), hosttest.Windows,
			"cannot be committed"},
		"a failure on Windows is listed": {newReport(hosttest.Windows, of(hosttest.Failed)),
			hosttest.Windows, ""},
		"the results of Wine are not results of Windows": {newReport(hosttest.Wine, of(hosttest.Verified)),
			hosttest.Windows, `come from "wine"`},
		"a behavior has one result": {newReport(hosttest.Wine, of(hosttest.Verified), of(hosttest.Verified)),
			hosttest.Wine, "twice"},
		"a behavior that the suite dropped is noticed": {newReport(hosttest.Wine, hosttest.Result{Operation: "Files.Write",
			Behavior: "x", Result: hosttest.Verified}), hosttest.Wine, "no longer has"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkReport(test.report, test.where, exampleBehaviors())
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestReadColumns(t *testing.T) {
	t.Run("an environment without a file was not run", func(t *testing.T) {
		columns, err := readColumns(fstest.MapFS{"wine.json": {Data: []byte(`{"environment": "wine", "system": "", "results": []}`)}}, nil)
		if err != nil || len(columns) != 5 || columns[0].ran || !columns[1].ran || columns[2].ran {
			t.Errorf("got %v, %v", columns, err)
		}
	})
	t.Run("results of one release are no results of another", func(t *testing.T) {
		report := `{"environment": "windows", "system": "Windows Server 2022 Datacenter, 10.0.20348.681", "results": []}`
		columns, err := readColumns(fstest.MapFS{"windows-2022.json": {Data: []byte(report)}}, nil)
		if err != nil || !columns[3].ran || columns[3].title != "Windows 2022" {
			t.Errorf("got %v, %v", columns, err)
		}
		if _, err := readColumns(fstest.MapFS{"windows-2025.json": {Data: []byte(report)}}, nil); err == nil {
			t.Error("no error")
		}
	})
	t.Run("a file that is no report is named", func(t *testing.T) {
		_, err := readColumns(fstest.MapFS{"wine.json": {Data: []byte(`[]`)}}, nil)
		if err == nil || !strings.Contains(err.Error(), "wine.json") {
			t.Errorf("got %v", err)
		}
	})
}

func TestWitnessAnswers_ShownPerWindowsRelease(t *testing.T) {
	columns, err := readColumns(fstest.MapFS{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	q := question.All()[0]
	d, err := q.Answer("Windows Server 2022 Datacenter, 10.0.20348.5499", nil, nil, errors.New("one|two"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"windows-2022", "windows-2025"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Write(filepath.Join(dir, "windows-2022")); err != nil {
		t.Fatal(err)
	}
	answers, err := readAnswers(os.DirFS(dir), columns)
	if table := answerTable(answers, columns); err != nil || !strings.Contains(table, "` | not run | not known: one/two | not run |\n") {
		t.Errorf("%v\n%s", err, table)
	}
	if err := d.Write(filepath.Join(dir, "windows-2025")); err != nil {
		t.Fatal(err)
	}
	if _, err := readAnswers(os.DirFS(dir), columns); err == nil {
		t.Error("the answers of another Windows are accepted")
	}
}
