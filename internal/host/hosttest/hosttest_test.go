package hosttest

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

func allBehaviors() []Behavior { return append(Behaviors(), RebootBehaviors()...) }

// The suite checks that each behavior calls its own method. Together with this test, every method is called.
func TestBehaviors_CoverEveryMethod(t *testing.T) {
	operations := Operations()
	if len(operations) < 30 || !slices.Contains(operations, "Files.Write") ||
		!slices.Contains(operations, "Processes.Self") {
		t.Fatalf("operations of a host: %v", operations)
	}
	covered := map[string]bool{}
	for _, b := range allBehaviors() {
		covered[b.Operation] = true
		if !slices.Contains(operations, b.Operation) {
			t.Errorf("%q is about %s, which is no method of a host", b.Sentence, b.Operation)
		}
	}
	for _, operation := range operations {
		if !covered[operation] {
			t.Errorf("no behavior is about %s", operation)
		}
	}
}

func TestBehaviors_HaveUniqueIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range allBehaviors() {
		if seen[b.ID()] {
			t.Errorf("twice: %s", b.ID())
		}
		seen[b.ID()] = true
		if b.Sentence == "" || strings.ContainsAny(b.Sentence, "|/\n") {
			t.Errorf("the sentence of %s does not fit into a table and a test's name", b.ID())
		}
	}
}

// A forgotten interface would be passed through unrecorded.
func TestCalls_EveryInterfaceRecorded(t *testing.T) {
	recorded := reflect.ValueOf((&calls{}).wrapHost(host.Host{}))
	for i := range recorded.NumField() {
		if recorded.Field(i).IsNil() {
			t.Errorf("calls of %s are not recorded", recorded.Type().Field(i).Name)
		}
	}
}

func TestJudge(t *testing.T) {
	holds, fails, absent := outcome{}, outcome{failures: []string{"a.go:1: wrong"}}, outcome{absent: "no feature"}
	for name, test := range map[string]struct {
		where   Environment
		outcome outcome
		mark    Mark
		status  Status
		words   string
	}{
		"what holds in memory is simulated": {Fake, holds, Mark{}, Simulated, ""},
		"what holds under Wine is verified": {Wine, holds, Mark{}, Verified, ""},
		"what holds on the lab's replacement is no more": {Wine, holds, Mark{Status: Emulated, Reason: "a DLL"}, Emulated,
			""},
		"what fails fails": {Wine, fails, Mark{}, Failed, "a.go:1: wrong"},
		"what fails on a replacement fails": {Wine, fails, Mark{Status: Emulated, Reason: "a DLL"},
			Failed, "a.go:1: wrong"},
		"what is missing as declared is not shown": {Wine, fails, Mark{Status: FakeOnly, Reason: "none"},
			FakeOnly, "NOT SHOWN HERE"},
		"what differs as declared is not shown": {Wine, fails, Mark{Status: Differs, Reason: "odd"},
			Differs, "NOT SHOWN HERE"},
		"what works though declared as missing says so": {Wine, holds, Mark{Status: FakeOnly, Reason: "none"}, Failed,
			"remove the mark"},
		"what works though it is to differ says so": {Wine, holds, Mark{Status: Differs, Reason: "odd"}, Failed,
			"remove the mark"},
		"what the machine lacks was not run": {Windows, absent, Mark{}, NotRun,
			"NOT RUN ON THIS MACHINE: no feature"},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, words := judgeOutcome(test.where, test.outcome, test.mark)
			if status != test.status || !strings.Contains(words, test.words) {
				t.Errorf("got %q (%s), want %q (%s)", status, words, test.status, test.words)
			}
		})
	}
}

func TestCheckMarks(t *testing.T) {
	good := Mark{Of: "Files.Write", Status: FakeOnly, Reason: "none"}
	for name, test := range map[string]struct {
		marks []Mark
		want  string
	}{
		"an operation and a behavior may be marked": {[]Mark{good, {"Tree.Rename: renaming a missing path fails",
			Differs, "odd"}}, ""},
		"a mark of nothing":                  {[]Mark{{"Files.Wrote", FakeOnly, "none"}}, "no behavior"},
		"a mark twice":                       {[]Mark{good, good}, "two marks"},
		"a mark without a reason":            {[]Mark{{"Files.Write", FakeOnly, " "}}, "needs a reason"},
		"nothing is verified by declaration": {[]Mark{{"Files.Write", Verified, "trust me"}}, "cannot be declared"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckMarks(test.marks)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestFindMark_BehaviorBeforeOperation(t *testing.T) {
	b := Behavior{Operation: "Files.Write", Sentence: "x"}
	marks := []Mark{{"Files.Write: x", Differs, "this"}, {"Files.Write", FakeOnly, "all"},
		{"Files.Open", FakeOnly, "other"}}
	if got, ok := findMark(b, marks); !ok || got.Reason != "this" {
		t.Errorf("got %v", got)
	}
	if _, ok := findMark(Behavior{Operation: "Files.Stat"}, marks); ok {
		t.Error("a behavior without a mark has one")
	}
}

// A behavior may panic or hang in a call that ignores its context, but the suite must continue.
func TestRunProtected_PanicDoesNotEndSuite(t *testing.T) {
	t.Run("a panic is a failure", func(t *testing.T) {
		s := &suite{ctx: t.Context()}
		s.runProtected(func() { panic("broken") })
		if got := s.collectOutcome(); len(got.failures) != 1 || !strings.Contains(got.failures[0], "panic: broken") {
			t.Errorf("got %v", got)
		}
	})
	t.Run("the first fatal failure ends it", func(t *testing.T) {
		s := &suite{ctx: t.Context()}
		s.runProtected(func() { s.Errorf("one"); s.Fatalf("two"); s.Errorf("three") })
		if got := s.collectOutcome(); len(got.failures) != 2 || !strings.HasPrefix(got.failures[1], "hosttest_test.go:") {
			t.Errorf("got %v", got)
		}
	})
	t.Run("what the machine lacks is no failure", func(t *testing.T) {
		s := &suite{ctx: t.Context()}
		s.runProtected(func() { s.requireNoError(ErrNotRun) })
		if got := s.collectOutcome(); len(got.failures) != 0 || got.absent == "" || got.hasPassed() {
			t.Errorf("got %v", got)
		}
	})
	t.Run("one that waits for its context ends with it", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		s := &suite{ctx: ctx}
		s.runProtected(func() { s.waitUntil("never", func() bool { return false }) })
		if got := s.collectOutcome(); len(got.failures) != 1 {
			t.Errorf("got %v", got)
		}
	})
}

func TestReport(t *testing.T) {
	one, two := Behavior{Operation: "A.B", Sentence: "one"}, Behavior{Operation: "A.B", Sentence: "two"}
	var first, second Report
	first.addResult(one, Verified, "")
	first.addResult(two, NotRun, "not asked for")
	second.addResult(two, Verified, "")

	merged := first.Merge(second)
	if merged.Of(two.ID()).Result != Verified || merged.Of(one.ID()).Result != Verified ||
		first.Of(two.ID()).Result != NotRun {
		t.Errorf("merged: %v, first: %v", merged, first)
	}
	if got := merged.Merge(first); got.Of(two.ID()).Result != Verified {
		t.Errorf("what a later run did not run is forgotten: %v", got)
	}
	if got := first.Of("none"); got.Result != NotRun {
		t.Errorf("what was never run is %v", got)
	}
	if got := first.Difference(merged); !slices.Equal(got, []string{"A.B: two: not run (not asked for), now verified"}) {
		t.Errorf("difference: %q", got)
	}
	if got := second.Difference(merged); !slices.Equal(got, []string{"A.B: one: new, verified"}) {
		t.Errorf("difference: %q", got)
	}

	path := filepath.Join(t.TempDir(), "report.json")
	if err := merged.Write(path); err != nil {
		t.Fatal(err)
	}
	read, err := ReadReport(os.DirFS(filepath.Dir(path)), "report.json")
	if err != nil || !reflect.DeepEqual(read, merged) {
		t.Errorf("read %v, %v", read, err)
	}
	if err := os.WriteFile(path, []byte(`{"shape": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadReport(os.DirFS(filepath.Dir(path)), "report.json"); err == nil {
		t.Error("something else was read as a report")
	}
}
