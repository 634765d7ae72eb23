package fleet

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/controller/disruption"
	"github.com/windows-machine-config/wmco/lab/audit"
)

// counts are the values of all counters at one time.
type counts struct {
	at    time.Time
	costs []Cost
	kinds map[string]int
	cpu   CPU
}

func (l *lab) readCounts() (counts, error) {
	if err := l.audit.Update(); err != nil {
		return counts{}, err
	}
	c := counts{at: time.Now(), costs: costsOf(l.env.Hosts()), kinds: maps.Clone(l.audit.Kinds)}
	var err error
	if c.cpu.Hosts, err = processorTime(os.Getpid()); err != nil {
		return counts{}, err
	}
	if c.cpu.ControlPlane, err = processorTime(l.env.Cluster().PID()); err != nil {
		return counts{}, err
	}
	if l.operator != nil {
		c.cpu.Operator, err = processorTime(l.operator.PID())
	}
	return c, err
}

// phaseSince returns the cost since an earlier count.
func (l *lab) phaseSince(before counts, scenario Scenario) (Phase, error) {
	after, err := l.readCounts()
	if err != nil {
		return Phase{}, err
	}
	if l.operator == nil { // it has ended or was never started
		before.cpu.Operator = 0
	}
	costs := costsSince(after.costs, before.costs)
	phase := Phase{
		Scenario: scenario, TotalSeconds: after.at.Sub(before.at).Seconds(), CPU: after.cpu.differenceFrom(before.cpu),
		Worst: worstCost(costs), All: totalCost(costs), Kinds: map[string]int{},
	}
	for kind, n := range after.kinds {
		if n -= before.kinds[kind]; n == 0 {
			continue
		}
		phase.Kinds[kind] = n
		if verb, _, _ := strings.Cut(kind, " "); (audit.Event{Verb: verb}).IsWrite() {
			phase.Writes += n
		} else {
			phase.Reads += n
		}
	}
	return phase, nil
}

// The time without activity after which the operator counts as quiet, the timeout for that, and the poll
// interval.
const (
	quietPeriod = 3 * time.Second
	// fleetQuietPeriod is for more than smallFleet hosts: the operator batches the changes of many hosts before
	// it writes the progress.
	fleetQuietPeriod = disruption.MaxBatchDelay + time.Second
	smallFleet       = 10
	quietTimeout     = 3 * time.Minute
	pollInterval     = 200 * time.Millisecond
)

// awaitIdle waits until the operator is quiet, and returns the time of its last activity.
func (l *lab) awaitIdle(ctx context.Context) (last time.Time, err error) {
	quiet := quietPeriod
	if l.Hosts > smallFleet {
		quiet = fleetQuietPeriod
	}
	ctx, cancel := context.WithTimeoutCause(ctx, quietTimeout, fmt.Errorf("the operator was never quiet for %s within %s", quiet, quietTimeout))
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	last = time.Now()
	for before := -1; ; {
		now, err := l.countActivity()
		if err != nil {
			return last, err
		}
		if now != before {
			before, last = now, time.Now()
		}
		if time.Since(last) >= quiet {
			return last, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return last, context.Cause(ctx)
		}
		if err := l.checkRunning(); err != nil {
			return last, err
		}
	}
}

// countActivity counts the actions of the operator: requests, and connections to hosts.
func (l *lab) countActivity() (int, error) {
	if err := l.audit.Update(); err != nil {
		return 0, err
	}
	n := l.env.Connections()
	for _, count := range l.audit.Kinds {
		n += count
	}
	return n, nil
}
