package remote

import (
	"context"
	"io"
)

// Output opens a session and returns what the host will print.
func (c *Connection) Output(ctx context.Context) (io.Reader, error) {
	s, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	return s.stdout, nil
}
