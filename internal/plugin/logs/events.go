package logs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/windows-machine-config/wmco/internal/fleet"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/podexec"
)

// maxKubeletEvents is the maximum number of events requested from a kubelet.
const maxKubeletEvents = 1000

// showEvents shows the event log of a host. The operator reads the complete log; otherwise the events come from
// the kubelet.
func (c *command) showEvents(ctx context.Context, instance fleet.Instance, node string, service []string) error {
	err := c.runOperatorLogs(ctx, instance, service)
	if err == nil || ctx.Err() != nil || c.follow || node == "" {
		return err
	}
	source := nodespec.ServiceAgent
	if len(service) > 0 {
		source = service[0]
	}
	if c.tail == 0 {
		return nil
	}
	said := err.Error()
	if status := podexec.ExitStatus(0); errors.As(err, &status) {
		said = "see above"
	}
	served, unserved := c.kubeletEvents(ctx, node, source)
	if unserved != nil {
		return errors.Join(err, fmt.Errorf("and the kubelet of node %s does not serve events: %w", node, unserved))
	}
	fmt.Fprintf(c.ErrOut, "The operator cannot read the events (%s). The kubelet of node %s shows the last events of %s in the log Application, of any age:\n",
		said, node, source)
	if strings.TrimSpace(string(served)) == "" {
		fmt.Fprintln(c.ErrOut, "There are none.")
		return nil
	}
	_, err = c.Out.Write(served)
	return err
}

func (c *command) kubeletEvents(ctx context.Context, node, source string) ([]byte, error) {
	from, err := c.kubelet(node)
	if err != nil {
		return nil, err
	}
	most := c.tail
	if most < 0 {
		most = maxKubeletEvents
	}
	ctx, cancel := context.WithTimeout(ctx, eventsTimeout)
	defer cancel()
	return from.Events(ctx, source, most)
}
