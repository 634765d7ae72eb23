package bench

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/controller/disruption"
	"github.com/windows-machine-config/wmco/lab/bench/hostcost"
)

// How long nothing must have happened until the operator counts as quiet, how long that may take, and how often to
// look.
const (
	quietFor = 3 * time.Second
	// quietForFleets is for more than smallFleet hosts: the operator gathers the changes of many hosts before it writes
	// how far they are.
	quietForFleets = disruption.LongestGathering + time.Second
	smallFleet     = 10
	settleLimit    = time.Minute
	lookEvery      = 100 * time.Millisecond
)

// quietTime is how long that many hosts must have caused no work until the operator counts as quiet.
func quietTime(hosts int) time.Duration {
	if hosts > smallFleet {
		return quietForFleets
	}
	return quietFor
}

// counts are all counters at one moment.
type counts struct {
	costs                            []hostcost.Cost
	steps, reconciles, reads, writes int
}

func (s *scenario) counts() (counts, error) {
	c := counts{costs: hostcost.Of(s.rig.Hosts())}
	var err error
	if c.steps, err = counter(stepsCounter, "", ""); err != nil {
		return c, err
	}
	if c.reconciles, err = counter(reconcilesCounter, "controller", "instance"); err != nil {
		return c, err
	}
	err = s.audit.Update()
	c.reads, c.writes = s.audit.Reads, s.audit.Writes
	return c, err
}

// activity is what changes while the operator does something. Bytes are left out: keepalives are not work.
type activity struct{ connections, execs, reconciles, writes int }

func (s *scenario) activity() (activity, error) {
	c, err := s.counts()
	all := hostcost.Sum(c.costs)
	return activity{all.Connections, all.Execs, c.reconciles, c.writes}, err
}

// settle waits until the operator is quiet. One that never is is not waited for without end: the budgets tell of it.
func (s *scenario) settle(ctx context.Context) error {
	return settle(ctx, s.clock, quietTime(s.hosts), s.activity)
}

func settle(ctx context.Context, clock clock.WithTicker, quiet time.Duration, look func() (activity, error)) error {
	begin := clock.Now()
	since := begin
	last, err := look()
	if err != nil {
		return err
	}
	ticker := clock.NewTicker(lookEvery)
	defer ticker.Stop()
	for clock.Since(since) < quiet && clock.Since(begin) < settleLimit {
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return fmt.Errorf("wait until the operator is quiet: %w", context.Cause(ctx))
		}
		now, err := look()
		if err != nil {
			return err
		}
		if now != last {
			last, since = now, clock.Now()
		}
	}
	return nil
}

// awaitReconciles returns a function that waits until each instance was looked at once more since, and the operator is
// quiet again.
func (s *scenario) awaitReconciles() (func(context.Context) error, error) {
	before, err := counter(reconcilesCounter, "controller", "instance")
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeoutCause(ctx, settleLimit,
			fmt.Errorf("the operator did not look at %d instances within %s", s.hosts, settleLimit))
		defer cancel()
		ticker := s.clock.NewTicker(lookEvery)
		defer ticker.Stop()
		for {
			now, err := counter(reconcilesCounter, "controller", "instance")
			if err != nil {
				return err
			}
			if now-before >= s.hosts {
				return s.settle(context.WithoutCancel(ctx))
			}
			select {
			case <-ticker.C():
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}, nil
}

// wait lets time pass.
func (s *scenario) wait(ctx context.Context, d time.Duration) error {
	timer := s.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
