package logprinter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// Viewer prints the requested part of a log.
type Viewer struct {
	Out, ErrOut io.Writer
	Clock       clock.Clock
	// Follow continues with new lines.
	Follow bool
	// Tail is the number of last lines to print; negative for all.
	Tail int
	// Since is the maximum age of the first line; 0 for any age.
	Since time.Duration
}

// followInterval is the interval between reads of a followed log.
const followInterval = time.Second

// estimatedLineSize is the usual maximum size of a line, in bytes.
const estimatedLineSize = 256

// maxServiceName is the maximum length of a service name reported by a host, in bytes.
const maxServiceName = 256

// initialPartSize is the size of the first read when searching for a time, in bytes.
const initialPartSize = 64 << 10

// Services lists the services with a log.
func (v Viewer) Services(ctx context.Context, s Source) error {
	services, err := s.Services(ctx)
	if err != nil {
		return err
	}
	for _, service := range services {
		if _, err := fmt.Fprintln(v.Out, sanitize.Plain(service, maxServiceName)); err != nil {
			return err
		}
	}
	return nil
}

// Show prints the end of the log of a service and, with Follow, new lines.
func (v Viewer) Show(ctx context.Context, s Source, service string) error {
	path, err := s.Current(ctx, service)
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("service %s has no log. List the services with a log: kubectl windows logs <name> (%w)", service, err)
	}
	if err != nil {
		return err
	}
	return v.printLog(ctx, s, path)
}

// outputError is the error of an output that accepts no more data.
type outputError struct{ error }

func (e outputError) Unwrap() error { return e.error }

func (v Viewer) write(lines []byte) error {
	if _, err := v.Out.Write(lines); err != nil {
		return outputError{err}
	}
	return nil
}

func (v Viewer) printLog(ctx context.Context, s Source, path string) error {
	at, err := v.printEnd(ctx, s, path)
	if err != nil {
		return err
	}
	for warned := ""; v.Follow; {
		select {
		case <-v.Clock.After(followInterval):
		case <-ctx.Done():
			return nil
		}
		at, err = v.printRest(ctx, s, path, at)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // an interrupted command has succeeded
		}
		if broken := (outputError{}); errors.As(err, &broken) {
			return broken
		}
		if errors.Is(err, ErrGone) {
			return err
		}
		warned = v.Warn(err, warned) // a restart of the kubelet does not end the command
	}
	return nil
}

// Warn prints an error unless the previous error was the same. It returns the printed error for the next call.
func (v Viewer) Warn(err error, before string) string {
	if err == nil {
		return ""
	}
	if err.Error() != before {
		fmt.Fprintln(v.ErrOut, "Warning:", err)
	}
	return err.Error()
}

var errShrinking = errors.New("the log was truncated more than once while it was read")

// printRest prints a log from an offset on, and returns the offset after the printed part. A log that became shorter
// was rotated, and a new log has begun. A log that shrinks repeatedly would be printed endlessly.
func (v Viewer) printRest(ctx context.Context, s Source, path string, at int64) (int64, error) {
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
		if at = more.endOffset(); len(more.Body) == 0 || at >= more.Size {
			return at, nil
		}
	}
}

// printEnd prints the requested end of a log, and returns the offset after the printed part.
func (v Viewer) printEnd(ctx context.Context, s Source, path string) (int64, error) {
	if v.Since == 0 && v.Tail < 0 {
		return v.printRest(ctx, s, path, 0)
	}
	read := v.readLast
	if v.Since > 0 {
		read = v.readSince
	}
	lines, end, err := read(ctx, s, path)
	if err != nil {
		return 0, err
	}
	return end, v.write(lines)
}

// readLast reads the last lines of a log. It starts with the estimated size and doubles the size until the
// lines are complete, or the source returns no more.
func (v Viewer) readLast(ctx context.Context, s Source, path string) (lines []byte, end int64, err error) {
	for most := int64(v.Tail+1) * estimatedLineSize; ; most *= 2 {
		p, err := s.Last(ctx, path, most)
		if err != nil {
			return nil, 0, err
		}
		lines, enough := lastLines(p.Body, v.Tail)
		if enough || p.isComplete(most) {
			if !enough {
				v.warnTruncated(p, path)
			}
			return lines, p.endOffset(), nil
		}
	}
}

// isComplete reports whether the part is the maximum available end of a log: the full log, or less than the
// requested size.
func (p Part) isComplete(asked int64) bool { return p.From == 0 || int64(len(p.Body)) < asked }

// warnTruncated warns that the source may not have returned all requested lines.
func (v Viewer) warnTruncated(p Part, path string) {
	if p.From > 0 {
		fmt.Fprintf(v.ErrOut, "Warning: only the last %d MiB of %s were searched; --tail=-1 without --since prints the complete log\n",
			len(p.Body)>>20, path)
	}
}

// readSince reads the lines of a log written since a time, limited to the requested number of lines. It
// doubles the size until the part contains earlier lines.
func (v Viewer) readSince(ctx context.Context, s Source, path string) (lines []byte, end int64, err error) {
	from := v.Clock.Now().Add(-v.Since)
	for most := int64(initialPartSize); ; most *= 2 {
		p, err := s.Last(ctx, path, most)
		if err != nil {
			return nil, 0, err
		}
		lines, earlier, err := linesSince(p.Body, p.Modified, from)
		if !p.isComplete(most) && (err != nil || !earlier) {
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
			v.warnTruncated(p, path)
		}
		return lines, p.endOffset(), nil
	}
}

// lastLines returns the last count lines of a text, and whether the text has more lines.
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
