package bench

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/lab/rig"
)

// good returns a whole run that keeps all budgets, and only just.
func good() Result {
	cost := Cost{Connections: 2, Execs: 8, SFTPSessions: 2, Reboots: 1, Processes: 40, Services: 20, Received: 25}
	join := func(hosts int, roundTrip time.Duration, seconds float64) Join {
		return Join{Hosts: hosts, RoundTrip: roundTrip, Seconds: seconds, Worst: cost, All: cost,
			Steps: 30 * hosts, Reads: 40 * hosts, Writes: 15 * hosts}
	}
	return Result{
		Payload: Payload{Files: 13, RawBytes: 100, AgentBytes: 10, ArchiveBytes: 20},
		Whole:   &Whole{Payload: Payload{RawBytes: 100}, Join: join(1, 0, 9)},
		Joins:   []Join{join(1, 0, 2.9), join(1, distant, 12.8), join(10, 0, 9.9), join(50, 0, 59.9)},
		Quiets: []Quiet{
			{Occasion: LeftAlone, Hosts: 1}, {Occasion: LookAgain, Hosts: 1, Reconciles: 2},
			// What a restarted operator writes and what the hosts do by themselves has no budget.
			{Occasion: Restarted, Hosts: 1, Reconciles: 1, Writes: 3, All: Cost{Processes: 1}},
			{Occasion: Upgraded, Hosts: 1, Reconciles: 1, Writes: 3, All: Cost{Processes: 1}},
		},
		Arrival: &rig.Arrival{
			UserData: 70 * time.Second, Noticed: 15 * time.Second, Windows: 210 * time.Second,
			Returned: 6 * time.Second, Line: time.Second,
			Between: 6900 * time.Millisecond,
		},
		Transfers: []Transfer{{RoundTrip: distant, PlainSeconds: 30, AgentSeconds: 0.5, ArchiveSeconds: 1.5}},
	}
}

func TestBudgets(t *testing.T) {
	t.Run("a run at the limits keeps all budgets", func(t *testing.T) {
		for _, line := range Evaluate(good()) {
			if line.Verdict != Kept || line.Measured == "" {
				t.Errorf("%+v", line)
			}
		}
	})
	for name, c := range map[string]struct {
		spoil   func(*Result)
		what    string
		verdict Verdict
	}{
		"a third connection": {func(r *Result) {
			r.Joins[0].Worst.Connections = 3
		}, "SSH connections", Over},
		"a ninth exec": {func(r *Result) { r.Joins[1].Worst.Execs = 9 }, "execs", Over},
		"one PowerShell": {func(r *Result) {
			r.Joins[2].Worst.PowerShell = 1
		}, "PowerShell starts", Over},
		"a third SFTP session": {func(r *Result) {
			r.Joins[3].Worst.SFTPSessions = 3
		}, "SFTP sessions", Over},
		"a second reboot": {func(r *Result) { r.Joins[0].Worst.Reboots = 2 }, "reboots", Over},
		"one byte too many": {func(r *Result) {
			r.Whole.Join.Worst.Received = 26
		}, "bytes on the wire", Over},
		"a connection while left alone":             {func(r *Result) { r.Quiets[0].All.Connections = 1 }, "SSH connections", Over},
		"a read too many for a host alone":          {func(r *Result) { r.Joins[0].Reads++ }, "API reads", Over},
		"a write too many for a host alone":         {func(r *Result) { r.Joins[0].Writes = 21 }, "API writes", Over},
		"a read too many for each of ten hosts":     {func(r *Result) { r.Joins[2].Reads++ }, "API reads", Over},
		"a write too many for each of fifty hosts":  {func(r *Result) { r.Joins[3].Writes++ }, "API writes", Over},
		"a write while left alone":                  {func(r *Result) { r.Quiets[0].Writes = 1 }, "API writes", Over},
		"a process started while left alone":        {func(r *Result) { r.Quiets[0].All.Processes = 1 }, "process starts on hosts", Over},
		"an exec when made to look again":           {func(r *Result) { r.Quiets[1].All.Execs = 1 }, "execs", Over},
		"a write when made to look again":           {func(r *Result) { r.Quiets[1].Writes = 1 }, "API writes", Over},
		"a connection of a restarted operator":      {func(r *Result) { r.Quiets[2].All.Connections = 1 }, "SSH connections", Over},
		"a connection of another version":           {func(r *Result) { r.Quiets[3].All.Connections = 1 }, "SSH connections", Over},
		"a service stopped by a restarted operator": {func(r *Result) { r.Quiets[2].All.Services = 1 }, "service operations on hosts", Over},
		"a slow host":      {func(r *Result) { r.Joins[0].Seconds = 3; r.Joins[1].Seconds = 12 }, "ConfigMap to Ready", Slow},
		"ten slow hosts":   {func(r *Result) { r.Joins[2].Seconds = 10 }, "ConfigMap to all Ready", Slow},
		"fifty slow hosts": {func(r *Result) { r.Joins[3].Seconds = 60 }, "ConfigMap to all Ready", Slow},
		"a Machine that is a node after ten minutes": {func(r *Result) { r.Arrival.Windows = 9 * time.Minute }, "port 22 open to Ready", Over},
		"an operator that looks less often":          {func(r *Result) { r.Arrival.Returned += 200 * time.Millisecond }, "of that, the operator's own time", Over},
		"a host that is slow because it is far away": {func(r *Result) { r.Joins[1].Seconds = 12.9 + 0.1 }, "time beyond that without it", Slow},
	} {
		t.Run(name+" is reported, and nothing else", func(t *testing.T) {
			r := good()
			c.spoil(&r)
			others := slices.DeleteFunc(Evaluate(r), func(l Line) bool { return l.Verdict == Kept })
			if len(others) != 1 || others[0].What != c.what || others[0].Verdict != c.verdict {
				t.Errorf("got %+v, want %s %s", others, c.what, c.verdict)
			}
			if failed := len(Failed(Evaluate(r))) > 0; failed != (c.verdict == Over) {
				t.Errorf("the run fails: %v", failed)
			}
		})
	}
	t.Run("a run that measured nothing praises nothing", func(t *testing.T) {
		for _, line := range Evaluate(Result{}) {
			if line.Verdict != NotMeasured || line.Measured != "" {
				t.Errorf("%+v", line)
			}
		}
	})
	t.Run("quiet times add up, so that one noisy run is not hidden by others", func(t *testing.T) {
		r := good()
		r.Quiets = append(r.Quiets, Quiet{Occasion: LeftAlone, Writes: 1}, Quiet{Occasion: LeftAlone})
		if failed := Failed(Evaluate(r)); len(failed) != 1 || failed[0].Measured != "1" {
			t.Errorf("got %+v", failed)
		}
	})
}

func TestCosts(t *testing.T) {
	a, b := Cost{Connections: 2, Execs: 1, Received: 5, Sent: 1}, Cost{Connections: 1, Execs: 8, Processes: 3, Services: 4,
		Reboots: 1, SFTPSessions: 1, PowerShell: 1}
	if got := worst([]Cost{a, b}); got != (Cost{Connections: 2, Execs: 8, Processes: 3, Services: 4, Reboots: 1,
		SFTPSessions: 1, PowerShell: 1, Received: 5, Sent: 1}) {
		t.Errorf("worst is %+v", got)
	}
	total := sum([]Cost{a, b})
	if total.Connections != 3 || total.Execs != 9 || total.minus(b) != a {
		t.Errorf("sum is %+v", total)
	}
}

func TestAMeasurementThatSawNothingIsRefused(t *testing.T) {
	whole := Join{Hosts: 2, Steps: 2, Reads: 2, Writes: 2, All: Cost{Connections: 2, Execs: 2, SFTPSessions: 2,
		Processes: 2, Services: 2}}
	if err := whole.check(); err != nil {
		t.Error(err)
	}
	for what, blind := range map[string]func(*Join){
		"API reads": func(j *Join) { j.Reads = 0 },
		"API writes": func(j *Join) {
			j.Writes = 0
		}, "steps": func(j *Join) { j.Steps = 1 }, "SSH connections": func(j *Join) {
			j.All.Connections = 1
		},
		"process starts": func(j *Join) { j.All.Processes = 0 }, "service operations": func(j *Join) { j.All.Services = 0 },
	} {
		t.Run("without "+what, func(t *testing.T) {
			j := whole
			blind(&j)
			if err := j.check(); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("error is %v", err)
			}
		})
	}
}
