// Package hostevents prints what concerns a node in Windows' event log, as the agent on the host tells it. Which events these
// are is up to the agent.
package hostevents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/logprinter"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/text"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// Host has the agent of a host report its survey.
type Host interface {
	Survey(ctx context.Context, arguments ...string) (verb.Result, error)
}

// Viewer prints what is asked for of the event log: the last events, those since a moment, and what is added.
type Viewer struct {
	logprinter.Viewer
	Host Host
	// Service has it print the events of this service alone; empty for all.
	Service string
}

const (
	// lookBack is how old an event may be when nothing is said about its age.
	lookBack = 7 * 24 * time.Hour
	// interval is how often an event log that is followed is read again: each time the agent's program starts.
	interval = 5 * time.Second
	// overlap is how far back of the time of the last look it is read, because an event may show up late.
	overlap = time.Minute
)

// Show prints the events.
func (v Viewer) Show(ctx context.Context) error {
	if known := nodespec.ServiceNames(); v.Service != "" && !slices.Contains(known, v.Service) {
		return fmt.Errorf("a node has no service %s; its services are %s", v.Service, strings.Join(known, ", "))
	}
	since := v.Since
	if since == 0 {
		since = lookBack
	}
	asked := v.Clock.Now()
	found, err := v.ask(ctx, since)
	if err != nil {
		return err
	}
	v.warnOf(found.Unknown)
	lines := linesOf(found.Events, v.Service)
	shown := counted(lines)
	if v.Tail >= 0 {
		lines = lines[max(0, len(lines)-v.Tail):]
	}
	if err := v.print(lines); err != nil || !v.Follow {
		return err
	}
	return v.follow(ctx, asked, shown)
}

// warnOf says what is missing of what was asked for.
func (v Viewer) warnOf(unknown map[string]string) {
	missing := []string{unknown["events"]}
	if v.Since > 0 || v.Tail < 0 {
		missing = append(missing, unknown["earlier events"])
	}
	for _, why := range missing {
		if why != "" {
			fmt.Fprintln(v.ErrOut, "Warning: events are missing:", text.Plain(why, longestEvent))
		}
	}
}

// follow prints what is added after the last look, at which these lines were there.
func (v Viewer) follow(ctx context.Context, asked time.Time, shown map[string]int) error {
	for warned := ""; ; {
		select {
		case <-v.Clock.After(interval):
		case <-ctx.Done():
			return nil
		}
		now := v.Clock.Now()
		found, err := v.ask(ctx, now.Sub(asked)+overlap)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // an interrupted command has succeeded
		}
		if remote.ReasonOf(err) == remote.ReasonConnectionLost {
			return fmt.Errorf("%w. Run the command again when the host answers", err)
		}
		warned = v.Warn(err, warned) // a host that is busy ends nothing
		if err != nil {
			continue
		}
		lines := linesOf(found.Events, v.Service)
		if err := v.print(added(lines, shown)); err != nil {
			return err
		}
		asked, shown = now, counted(lines)
	}
}

// ask returns the events of so long ago.
func (v Viewer) ask(ctx context.Context, since time.Duration) (*verb.SurveyResult, error) {
	result, err := v.Host.Survey(ctx, "--events", fmt.Sprintf("last:%ds", max(1, int(since.Seconds()))))
	if err != nil {
		return nil, err
	}
	return result.Survey, nil
}

func (v Viewer) print(lines []string) error {
	var errs []error
	for _, line := range lines {
		_, err := fmt.Fprintln(v.Out, line)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// counted returns how often each line is there.
func counted(lines []string) map[string]int {
	count := map[string]int{}
	for _, line := range lines {
		count[line]++
	}
	return count
}

// added returns the lines that are more than those that were shown. Lines that are the same are of the same second, so that
// all of them are there or none.
func added(lines []string, shown map[string]int) (more []string) {
	now := map[string]int{}
	for _, line := range lines {
		if now[line]++; now[line] > shown[line] {
			more = append(more, line)
		}
	}
	return more
}
