package bench

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/lab/bench/fleet"
	"github.com/windows-machine-config/wmco/lab/bench/hostcost"
	"github.com/windows-machine-config/wmco/lab/rig"
)

// good returns a whole run that keeps all budgets, and only just.
func good() Result {
	cost := hostcost.Cost{Connections: 2, Execs: 8, SFTPSessions: 2, Reboots: 1, Processes: 40, Services: 20, Received: 25}
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
			{Occasion: Restarted, Hosts: 1, Reconciles: 1, Writes: 3, All: hostcost.Cost{Processes: 1}},
			{Occasion: Upgraded, Hosts: 1, Reconciles: 1, Writes: 3, All: hostcost.Cost{Processes: 1}},
		},
		Arrival: &rig.Arrival{
			UserData: 70 * time.Second, Noticed: 15 * time.Second, Windows: 210 * time.Second,
			Returned: 6 * time.Second, Line: time.Second,
			Between: 6900 * time.Millisecond,
		},
		Transfers: []Transfer{{RoundTrip: distant, PlainSeconds: 30, AgentSeconds: 0.5, ArchiveSeconds: 1.5}},
		Fleets:    goodFleets(),
	}
}

// goodFleets keep all budgets, and only just.
func goodFleets() []fleet.Result {
	arrivals := func(hosts int, first, last float64) []float64 {
		at := make([]float64, hosts)
		for i := range at {
			at[i] = first + (last-first)*float64(i)/float64(max(1, hosts-1))
		}
		return at
	}
	join := func(hosts int, each, seconds float64, memory int64) fleet.Phase {
		n := float64(hosts)
		return fleet.Phase{
			Occasion: fleet.Join, Seconds: seconds, Arrivals: arrivals(hosts, 14.9, seconds), Reads: int(30 * n * each), Writes: int(10 * n * each),
			CPU: fleet.CPU{Operator: n * each, ControlPlane: n * each, Hosts: n * each}, Worst: hostcost.Cost{Received: 1000},
			Memory: &fleet.Memory{Peak: memory, Resident: memory},
		}
	}
	upgrade := fleet.Phase{Occasion: fleet.Upgrade, Worst: hostcost.Cost{Connections: 2, Execs: 8, Received: 100}}
	return []fleet.Result{
		{Hosts: 1, SizePercent: realSize, Phases: []fleet.Phase{join(1, 1, 4.9, maxAloneMemory)}},
		{Hosts: 1, SizePercent: usualSize, Phases: []fleet.Phase{join(1, 1, 1, maxAloneMemory), {Occasion: fleet.SamePrograms, Seconds: 1.9}, upgrade}},
		{Hosts: 100, SizePercent: usualSize, Phases: []fleet.Phase{join(100, 1, 50, maxFleetMemory), upgrade}},
		{Hosts: 300, SizePercent: usualSize, Phases: []fleet.Phase{join(300, 1, 120, maxFleetMemory)}},
		{Hosts: 1000, SizePercent: usualSize, Phases: []fleet.Phase{
			join(1000, 1.19, 599, maxFleetMemory),
			{Occasion: fleet.Idle, Seconds: 60, CPU: fleet.CPU{Operator: 0.6}, Memory: &fleet.Memory{Peak: maxFleetMemory, Resident: maxKnownMemory}},
			{Occasion: fleet.Restart, Seconds: 19.9, Reads: 4000, Writes: 1000},
			{Occasion: fleet.Setting, Seconds: 299, Worst: hostcost.Cost{Connections: 2}},
		}},
	}
}

// occasion finds what a test spoils.
func occasion(r *Result, hosts int, of fleet.Occasion) *fleet.Phase {
	for i := range r.Fleets {
		if each := &r.Fleets[i]; each.Hosts == hosts && each.SizePercent == usualSize {
			for j := range each.Phases {
				if each.Phases[j].Occasion == of {
					return &each.Phases[j]
				}
			}
		}
	}
	panic("there is no such fleet, or nothing of that kind happened to it")
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
		"a thousand hosts that take long":            {func(r *Result) { occasion(r, 1000, fleet.Join).Arrivals[999] = 600 }, "ConfigMap to all Ready", Slow},
		"a late first host among a thousand": {func(r *Result) {
			occasion(r, 1000, fleet.Join).Arrivals[0] = 15
		}, "ConfigMap to the first Ready", Slow},
		"two hundred hosts that take long": {func(r *Result) { occasion(r, 300, fleet.Join).Arrivals[199] = 100 }, "ConfigMap to 200 Ready", Slow},
		"one MiB too many in a fleet": {func(r *Result) {
			occasion(r, 300, fleet.Join).Memory.Peak += mib
		}, "operator's memory at most", Over},
		"one MiB too many for a host alone":           {func(r *Result) { r.Fleets[0].Phases[0].Memory.Peak += mib }, "operator's memory at most", Over},
		"a host alone that takes long":                {func(r *Result) { r.Fleets[0].Phases[0].Seconds = 5 }, "ConfigMap to Ready", Slow},
		"a thousand instances known with too much":    {func(r *Result) { occasion(r, 1000, fleet.Idle).Memory.Resident += mib }, "operator's memory", Over},
		"an idle operator that works":                 {func(r *Result) { occasion(r, 1000, fleet.Idle).CPU.Operator = 0.7 }, "operator's processor time", Slow},
		"an idle operator that writes":                {func(r *Result) { occasion(r, 1000, fleet.Idle).Writes = 1 }, "API writes", Over},
		"an idle operator that visits a host":         {func(r *Result) { occasion(r, 1000, fleet.Idle).All.Connections = 1 }, "SSH connections", Over},
		"a restart among a thousand that visits one":  {func(r *Result) { occasion(r, 1000, fleet.Restart).All.Connections = 1 }, "SSH connections", Over},
		"a restart among a thousand that reads a lot": {func(r *Result) { occasion(r, 1000, fleet.Restart).Reads = 4100 }, "API requests for each instance", Over},
		"a restart among a thousand that takes long":  {func(r *Result) { occasion(r, 1000, fleet.Restart).Seconds = 20 }, "start to nothing left to do", Slow},
		"a setting that takes three connections":      {func(r *Result) { occasion(r, 1000, fleet.Setting).Worst.Connections = 3 }, "SSH connections, worst host", Over},
		"a setting that restarts a host":              {func(r *Result) { occasion(r, 1000, fleet.Setting).All.Reboots = 1 }, "reboots", Over},
		"a setting that is slow":                      {func(r *Result) { occasion(r, 1000, fleet.Setting).Seconds = 300 }, "until all nodes have it", Slow},
		"requests that grow with the fleet":           {func(r *Result) { occasion(r, 100, fleet.Join).Reads = 2900 }, "API requests", Over},
		"processor time that grows with the fleet": {func(r *Result) {
			occasion(r, 1000, fleet.Join).CPU.ControlPlane, occasion(r, 1000, fleet.Join).CPU.Hosts = 1300, 1080
		}, "control plane's processor time", Slow},
		"a write too many in a fleet": {func(r *Result) {
			occasion(r, 1000, fleet.Join).Writes, occasion(r, 1000, fleet.Join).Reads = 15001, 30000
		}, "API writes", Over},
		"one byte for a node on which nothing differs":        {func(r *Result) { occasion(r, 1, fleet.SamePrograms).All.Received = 1 }, "bytes on the wire", Over},
		"a restarted service on a node where nothing differs": {func(r *Result) { occasion(r, 1, fleet.SamePrograms).All.Services = 1 }, "service operations on hosts", Over},
		"a slow upgrade of a node on which nothing differs":   {func(r *Result) { occasion(r, 1, fleet.SamePrograms).Seconds = 2 }, "start of the operator to the new version", Slow},
		"an upgrade that sends everything again":              {func(r *Result) { occasion(r, 1, fleet.Upgrade).Worst.Received = 101 }, "bytes on the wire", Over},
		"an upgrade with a ninth exec":                        {func(r *Result) { occasion(r, 1, fleet.Upgrade).Worst.Execs = 9 }, "execs", Over},
		"an upgrade of many with a third connection for one":  {func(r *Result) { occasion(r, 100, fleet.Upgrade).Worst.Connections = 3 }, "SSH connections, worst host", Over},
		"an upgrade of one node that restarts its host":       {func(r *Result) { occasion(r, 1, fleet.Upgrade).Worst.Reboots = 1 }, "reboots", Over},
	} {
		t.Run(name, func(t *testing.T) {
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

func TestAMeasurementThatSawNothingIsRefused(t *testing.T) {
	whole := Join{Hosts: 2, Steps: 2, Reads: 2, Writes: 2, All: hostcost.Cost{Connections: 2, Execs: 2, SFTPSessions: 2,
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
