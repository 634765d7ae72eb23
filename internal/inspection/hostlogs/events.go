package hostlogs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/logprinter"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// Collector runs the agent command collect on a host.
type Collector interface {
	Collect(ctx context.Context, arguments ...string) (agentapi.Result, error)
}

// EventViewer prints events of Windows' event log that concern the node: the last events, events since a time,
// and new events. The agent on the host selects the events.
type EventViewer struct {
	logprinter.Viewer
	Host Collector
	// Service restricts the output to the events of this service; empty for all.
	Service string
}

const (
	// defaultMaxAge is the maximum age of an event by default.
	defaultMaxAge = 7 * 24 * time.Hour
	// followInterval is the interval between reads of a followed event log: each read starts the agent's program.
	followInterval = 5 * time.Second
	// readOverlap extends each read to before the previous read, because an event may appear late.
	readOverlap = time.Minute
)

// Show prints the events.
func (v EventViewer) Show(ctx context.Context) error {
	if known := nodespec.ServiceNames(); v.Service != "" && !slices.Contains(known, v.Service) {
		return fmt.Errorf("a node has no service %s; its services are %s", v.Service, strings.Join(known, ", "))
	}
	since := v.Since
	if since == 0 {
		since = defaultMaxAge
	}
	asked := v.Clock.Now()
	found, err := v.collectEvents(ctx, since)
	if err != nil {
		return err
	}
	v.warnMissing(found.Unknown)
	lines := formatEvents(found.Events, v.Service)
	shown := countLines(lines)
	if v.Tail >= 0 {
		lines = lines[max(0, len(lines)-v.Tail):]
	}
	if err := v.printLines(lines); err != nil || !v.Follow {
		return err
	}
	return v.followEvents(ctx, asked, shown)
}

// warnMissing prints a warning for requested events that are missing.
func (v EventViewer) warnMissing(unknown map[string]string) {
	missing := []string{unknown["events"]}
	if v.Since > 0 || v.Tail < 0 {
		missing = append(missing, unknown["earlier events"])
	}
	for _, why := range missing {
		if why != "" {
			fmt.Fprintln(v.ErrOut, "Warning: events are missing:", sanitize.Plain(why, maxEventLength))
		}
	}
}

// followEvents prints the events added after the last read. shown counts the lines of that read.
func (v EventViewer) followEvents(ctx context.Context, asked time.Time, shown map[string]int) error {
	for warned := ""; ; {
		select {
		case <-v.Clock.After(followInterval):
		case <-ctx.Done():
			return nil
		}
		now := v.Clock.Now()
		found, err := v.collectEvents(ctx, now.Sub(asked)+readOverlap)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // an interrupted command has succeeded
		}
		if remote.ReasonOf(err) == remote.ReasonConnectionLost {
			return fmt.Errorf("%w. Run the command again when the host responds", err)
		}
		warned = v.Warn(err, warned) // a busy host does not end the command
		if err != nil {
			continue
		}
		lines := formatEvents(found.Events, v.Service)
		if err := v.printLines(addedLines(lines, shown)); err != nil {
			return err
		}
		asked, shown = now, countLines(lines)
	}
}

// collectEvents returns the events of the given period until now.
func (v EventViewer) collectEvents(ctx context.Context, since time.Duration) (*agentapi.Collected, error) {
	result, err := v.Host.Collect(ctx, "--events", fmt.Sprintf("last:%ds", max(1, int(since.Seconds()))))
	if err != nil {
		return nil, err
	}
	return result.Collected, nil
}

func (v EventViewer) printLines(lines []string) error {
	var errs []error
	for _, line := range lines {
		_, err := fmt.Fprintln(v.Out, line)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// countLines returns the number of occurrences of each line.
func countLines(lines []string) map[string]int {
	count := map[string]int{}
	for _, line := range lines {
		count[line]++
	}
	return count
}

// addedLines returns the lines that exceed the shown ones. Equal lines are of the same second, so that either all of
// them exist or none.
func addedLines(lines []string, shown map[string]int) (more []string) {
	now := map[string]int{}
	for _, line := range lines {
		if now[line]++; now[line] > shown[line] {
			more = append(more, line)
		}
	}
	return more
}
