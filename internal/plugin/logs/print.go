package logs

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/internal/plugin/nodelogs"
)

// interval is how often a log that is followed is read again.
const interval = time.Second

// firstGuess is how many bytes a line has at most, as a rule.
const firstGuess = 256

// firstPart is how many bytes are read first, where a moment is looked for.
const firstPart = 64 << 10

// print prints the end of a file and, if it is followed, what comes.
func (c *command) print(ctx context.Context, f nodelogs.Files, path string) error {
	p, err := c.end(ctx, f, path)
	if err != nil {
		return err
	}
	if _, err := c.Out.Write(p.Body); err != nil {
		return err
	}
	for at := p.Size; c.follow; {
		select {
		case <-c.Clock.After(interval):
		case <-ctx.Done():
			return nil
		}
		more, err := f.From(ctx, path, at)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // an interrupted command has succeeded
		}
		switch {
		case err != nil:
			fmt.Fprintln(c.ErrOut, "Warning:", err) // a kubelet that restarts ends nothing
			continue
		case more.Size < at: // the file was put aside, and another one has begun
			at = 0
			continue
		}
		if _, err := c.Out.Write(more.Body); err != nil {
			return err
		}
		at = more.From + int64(len(more.Body))
	}
	return nil
}

// end reads the last lines of a file: so many bytes as they may have, and twice as many until that is enough.
func (c *command) end(ctx context.Context, f nodelogs.Files, path string) (nodelogs.Part, error) {
	if c.since > 0 {
		return c.sinceMoment(ctx, f, path)
	}
	if c.tail < 0 {
		return f.From(ctx, path, 0)
	}
	for most := int64(c.tail+1) * firstGuess; ; most *= 2 {
		p, err := f.Last(ctx, path, most)
		if err != nil {
			return nodelogs.Part{}, err
		}
		lines, enough := lastLines(p.Body, c.tail)
		if enough || p.From == 0 {
			p.Body = lines
			return p, nil
		}
	}
}

// sinceMoment reads the last lines of a file that were written since a moment, and of these as many as are asked for. It
// reads twice as many bytes until there are earlier ones.
func (c *command) sinceMoment(ctx context.Context, f nodelogs.Files, path string) (nodelogs.Part, error) {
	from := c.Clock.Now().Add(-c.since)
	for most := int64(firstPart); ; most *= 2 {
		p, err := f.Last(ctx, path, most)
		if err != nil {
			return nodelogs.Part{}, err
		}
		lines, earlier, err := later(p.Body, p.Modified, from)
		if p.From > 0 && (err != nil || !earlier) {
			continue
		}
		if err != nil {
			return nodelogs.Part{}, fmt.Errorf("%s: %w", path, err)
		}
		p.Body = lines
		if c.tail >= 0 {
			p.Body, _ = lastLines(lines, c.tail)
		}
		return p, nil
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
