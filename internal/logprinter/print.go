package logprinter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/text"
)

// Viewer prints what is asked for of a log.
type Viewer struct {
	Out, ErrOut io.Writer
	Clock       clock.Clock
	// Follow has it go on with what is written.
	Follow bool
	// Tail is how many lines of the end are printed; negative for all.
	Tail int
	// Since is how long ago the first line was written; 0 for any time.
	Since time.Duration
}

// interval is how often a log that is followed is read again.
const interval = time.Second

// firstGuess is how many bytes a line has at most, as a rule.
const firstGuess = 256

// maxServiceName limits the name of a service that a host reports, in bytes.
const maxServiceName = 256

// firstPart is how many bytes are read first, where a moment is looked for.
const firstPart = 64 << 10

// Services lists the services that have a log.
func (v Viewer) Services(ctx context.Context, s Source) error {
	services, err := s.Services(ctx)
	if err != nil {
		return err
	}
	for _, service := range services {
		if _, err := fmt.Fprintln(v.Out, text.Plain(service, maxServiceName)); err != nil {
			return err
		}
	}
	return nil
}

// Show prints the end of the log of a service and, if it is followed, what comes.
func (v Viewer) Show(ctx context.Context, s Source, service string) error {
	path, err := s.Current(ctx, service)
	if errors.Is(err, ErrNotThere) {
		return fmt.Errorf("service %s has no log. These have one: kubectl windows logs <name> (%w)", service, err)
	}
	if err != nil {
		return err
	}
	return v.print(ctx, s, path)
}

// outputError is of an output that takes no more.
type outputError struct{ error }

func (e outputError) Unwrap() error { return e.error }

func (v Viewer) write(lines []byte) error {
	if _, err := v.Out.Write(lines); err != nil {
		return outputError{err}
	}
	return nil
}

func (v Viewer) print(ctx context.Context, s Source, path string) error {
	at, err := v.end(ctx, s, path)
	if err != nil {
		return err
	}
	for warned := ""; v.Follow; {
		select {
		case <-v.Clock.After(interval):
		case <-ctx.Done():
			return nil
		}
		at, err = v.rest(ctx, s, path, at)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // an interrupted command has succeeded
		}
		if broken := (outputError{}); errors.As(err, &broken) {
			return broken
		}
		if errors.Is(err, ErrGone) {
			return err
		}
		warned = v.Warn(err, warned) // a kubelet that restarts ends nothing
	}
	return nil
}

// Warn prints an error unless it was the last time's too, and returns what is not to be printed again.
func (v Viewer) Warn(err error, before string) string {
	if err == nil {
		return ""
	}
	if err.Error() != before {
		fmt.Fprintln(v.ErrOut, "Warning:", err)
	}
	return err.Error()
}

var errShrinking = errors.New("the log became shorter more than once while it was read")

// rest prints a log from an offset on, and returns the offset after that. A log that has become shorter was put aside,
// and another one has begun. One that becomes shorter again and again would be printed without an end.
func (v Viewer) rest(ctx context.Context, s Source, path string, at int64) (int64, error) {
	for restarted := false; ; {
		more, err := s.From(ctx, path, at)
		if err != nil {
			return at, err
		}
		if more.Size < at {
			if restarted {
				return at, errShrinking
			}
			at, restarted = 0, true
			continue
		}
		if err := v.write(more.Body); err != nil {
			return at, err
		}
		if at = more.end(); len(more.Body) == 0 || at >= more.Size {
			return at, nil
		}
	}
}

// end prints the end of a log that is asked for, and returns the offset after that.
func (v Viewer) end(ctx context.Context, s Source, path string) (int64, error) {
	if v.Since == 0 && v.Tail < 0 {
		return v.rest(ctx, s, path, 0)
	}
	read := v.lastLines
	if v.Since > 0 {
		read = v.sinceMoment
	}
	lines, end, err := read(ctx, s, path)
	if err != nil {
		return 0, err
	}
	return end, v.write(lines)
}

// lastLines reads the last lines of a log: so many bytes as they may have, and twice as many until that is enough, or
// all that the source gives.
func (v Viewer) lastLines(ctx context.Context, s Source, path string) (lines []byte, end int64, err error) {
	for most := int64(v.Tail+1) * firstGuess; ; most *= 2 {
		p, err := s.Last(ctx, path, most)
		if err != nil {
			return nil, 0, err
		}
		lines, enough := lastLines(p.Body, v.Tail)
		if enough || p.whole(most) {
			if !enough {
				v.tellCut(p, path)
			}
			return lines, p.end(), nil
		}
	}
}

// whole reports whether no more than the part can be had of the end of a log: it is all of it, or the source has given
// less than was asked for.
func (p Part) whole(asked int64) bool { return p.From == 0 || int64(len(p.Body)) < asked }

// tellCut says that there may be more of what was asked for than the source gives.
func (v Viewer) tellCut(p Part, path string) {
	if p.From > 0 {
		fmt.Fprintf(v.ErrOut, "Warning: only the last %d MiB of %s were searched; --tail=-1 without --since shows all of it\n",
			len(p.Body)>>20, path)
	}
}

// sinceMoment reads the last lines of a log that were written since a moment, and of these as many as are asked for. It
// reads twice as many bytes until there are earlier ones.
func (v Viewer) sinceMoment(ctx context.Context, s Source, path string) (lines []byte, end int64, err error) {
	from := v.Clock.Now().Add(-v.Since)
	for most := int64(firstPart); ; most *= 2 {
		p, err := s.Last(ctx, path, most)
		if err != nil {
			return nil, 0, err
		}
		lines, earlier, err := later(p.Body, p.Modified, from)
		if !p.whole(most) && (err != nil || !earlier) {
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", path, err)
		}
		enough := earlier
		if v.Tail >= 0 {
			var more bool
			lines, more = lastLines(lines, v.Tail)
			enough = enough || more
		}
		if !enough {
			v.tellCut(p, path)
		}
		return lines, p.end(), nil
	}
}

// lastLines returns so many lines of the end of a text, and whether the text has more than these.
func lastLines(text []byte, count int) ([]byte, bool) {
	at := len(bytes.TrimSuffix(text, []byte("\n")))
	for range count {
		if at = bytes.LastIndexByte(text[:max(at, 0)], '\n'); at < 0 {
			return text, false
		}
	}
	if count == 0 {
		return nil, true
	}
	return text[at+1:], true
}
