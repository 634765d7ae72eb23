package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/windows-machine-config/wmco/internal/host/hosttest"
)

func examples() []hosttest.Behavior {
	return []hosttest.Behavior{
		{Operation: "Files.Write", Sentence: "a write replaces"},
		{Operation: "Files.Write", Sentence: "a write is exclusive"},
		{Operation: "Tree.Symlink", Sentence: "a link is followed"},
	}
}

func report(where hosttest.Environment, results ...hosttest.Result) hosttest.Report {
	return hosttest.Report{Environment: where, System: "Windows Server 2022", Results: results}
}

func TestRender(t *testing.T) {
	columns := []column{
		{environment: hosttest.Wine, title: "Wine", ran: true, report: report(hosttest.Wine,
			hosttest.Result{Operation: "Files.Write", Behavior: "a write replaces", Result: hosttest.Proven},
			hosttest.Result{Operation: "Tree.Symlink", Behavior: "a link is followed", Result: hosttest.FakeOnly,
				Reason: "Wine has no links"},
		)},
		{environment: hosttest.Windows, title: "Windows"},
	}
	got := render(examples(), columns)
	for _, want := range []string{
		"- Wine: run on a machine that says it is Windows Server 2022\n- Windows: **not yet run there**\n",
		"| `Files.Write` | 1 proven, 1 not run | 2 not run |\n",
		"| `Tree.Symlink` | 1 fake only | 1 not run |\n",
		"| fake only | Wine has no links | `Tree.Symlink` |\n",
		"| `Files.Write` | a write replaces | proven | not run |\n",
		"| `Files.Write` | a write is exclusive | not run | not run |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}

func TestNothingIsCalledWhatItsEnvironmentCannotShow(t *testing.T) {
	of := func(standing hosttest.Standing) hosttest.Result {
		return hosttest.Result{Operation: "Files.Write", Behavior: "a write replaces", Result: standing}
	}
	for name, test := range map[string]struct {
		report hosttest.Report
		where  hosttest.Environment
		want   string
	}{
		"in memory nothing is proven": {report(hosttest.Fake, of(hosttest.Proven)), hosttest.Fake,
			"cannot be committed"},
		"under Wine nothing is simulated": {report(hosttest.Wine, of(hosttest.Simulated)), hosttest.Wine,
			"cannot be committed"},
		"a failure under Wine is to be mended": {report(hosttest.Wine, of(hosttest.Failed)), hosttest.Wine,
			"cannot be committed"},
		"a real Windows has no stand-in": {report(hosttest.Windows, of(hosttest.StandIn)), hosttest.Windows,
			"cannot be committed"},
		"a failure on Windows is listed": {report(hosttest.Windows, of(hosttest.Failed)),
			hosttest.Windows, ""},
		"the results of Wine are not results of Windows": {report(hosttest.Wine, of(hosttest.Proven)),
			hosttest.Windows, `come from "wine"`},
		"a behavior has one result": {report(hosttest.Wine, of(hosttest.Proven), of(hosttest.Proven)),
			hosttest.Wine, "twice"},
		"a behavior that the suite dropped is noticed": {report(hosttest.Wine, hosttest.Result{Operation: "Files.Write",
			Behavior: "x", Result: hosttest.Proven}), hosttest.Wine, "no longer has"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkReport(test.report, test.where, examples())
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestReadColumns(t *testing.T) {
	t.Run("an environment without a file was not run", func(t *testing.T) {
		columns, err := readColumns(fstest.MapFS{"wine.json": {Data: []byte(`{"environment": "wine", "system": "", "results": []}`)}}, nil)
		if err != nil || len(columns) != 3 || columns[0].ran || !columns[1].ran || columns[2].ran {
			t.Errorf("got %v, %v", columns, err)
		}
	})
	t.Run("a file that is no report is named", func(t *testing.T) {
		_, err := readColumns(fstest.MapFS{"wine.json": {Data: []byte(`[]`)}}, nil)
		if err == nil || !strings.Contains(err.Error(), "wine.json") {
			t.Errorf("got %v", err)
		}
	})
}

func TestRewrite(t *testing.T) {
	got, err := rewrite([]byte("above\n"+begin+"\nold\n"+end+"\nbelow\n"), "new\n")
	if want := "above\n" + begin + "\n\nnew\n\n" + end + "\nbelow\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v", got, err)
	}
	for _, broken := range []string{"", begin, end + begin, begin + end + begin} {
		if _, err := rewrite([]byte(broken), "new\n"); err == nil {
			t.Errorf("%q was rewritten", broken)
		}
	}
}

func TestRun(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, filepath.FromSlash(document))
	if err := os.MkdirAll(filepath.Join(root, filepath.FromSlash(results)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(begin+"\n"+end+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(root, true, io.Discard); !errors.Is(err, errStale) {
		t.Errorf("the check of a stale document gave %v", err)
	}
	if err := run(root, false, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := run(root, true, io.Discard); err != nil {
		t.Errorf("the check of a fresh document gave %v", err)
	}
}

// The document of this repository says what the committed results say.
func TestTheDocumentIsFresh(t *testing.T) {
	if err := run("../..", true, io.Discard); err != nil {
		t.Error(err)
	}
}
