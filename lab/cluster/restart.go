package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
)

// Restart kills the control plane and starts it again with the same data and address. Clients continue with the
// same configuration; connections and watches break. Restart returns when the control plane is ready.
func (c *Cluster) Restart(ctx context.Context) error {
	c.lifecycleMu.Lock()
	defer c.lifecycleMu.Unlock()
	p := c.currentProcess()
	select {
	case <-c.done:
		return errors.New("restart the control plane: it has ended")
	default:
	}
	server, err := url.Parse(c.Config.Host)
	if err != nil {
		return fmt.Errorf("restart the control plane: its address: %w", err)
	}
	o := c.options
	o.Listen = server.Host
	c.setRestarting(true)
	p.Kill()
	if err := c.bootProcess(ctx, o); err != nil {
		if failed := c.currentProcess(); failed != p {
			failed.Kill()
		}
		close(c.done)
		return fmt.Errorf("restart the control plane: %w", err)
	}
	c.setRestarting(false)
	return nil
}

func (c *Cluster) setRestarting(restarting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restarting = restarting
}
