package status

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watchStatus prints the view after each change, until the context is done. A failed request is reported and
// retried: a restart of the API server does not end the watch.
func (c *command) watchStatus(ctx context.Context, reader client.Reader, names []string) error {
	before := ""
	for first := true; ; first = false {
		var now bytes.Buffer
		err := c.printStatus(ctx, reader, names, &now)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // an interrupted watch has succeeded
		}
		switch {
		case err != nil && first:
			return err
		case err != nil:
			fmt.Fprintln(c.ErrOut, "Warning:", err)
		case now.String() != before:
			before = now.String()
			if err := c.redrawOutput(before, first); err != nil {
				return err
			}
		}
		select {
		case <-c.Clock.After(pollInterval):
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *command) redrawOutput(text string, first bool) error {
	between := "\n"
	cleared, err := c.ClearScreen()
	if err != nil {
		return err
	}
	if cleared || first {
		between = ""
	}
	_, err = io.WriteString(c.Out, between+text)
	return err
}
