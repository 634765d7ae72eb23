package remote

import (
	"context"
	"io"
)

// Output opens a session and returns its output.
func (c *Connection) Output(ctx context.Context) (io.Reader, error) {
	s, err := c.openSession(ctx)
	if err != nil {
		return nil, err
	}
	return s.stdout, nil
}
