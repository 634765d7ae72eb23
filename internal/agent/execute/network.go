package execute

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// awaitNetwork waits until hybrid-overlay-node has created the HNS network with the node's subnet.
func (e *Executor) awaitNetwork(ctx context.Context, o plan.AwaitNetwork) error {
	deadline := e.Clock.Now().Add(timeouts.NetworkTimeout)
	for {
		networks, err := e.Host.Networks.Networks(ctx)
		if err != nil {
			return fmt.Errorf("list HNS networks: %w", err)
		}
		found := "the network does not exist"
		if o.Lacks != "" {
			found += ", and " + o.Lacks
		}
		for _, network := range networks {
			if !strings.EqualFold(network.Name, o.Network) {
				continue
			}
			if network.Subnet == o.Subnet {
				if mismatch := plan.DescribeAdapterMismatch(network, o.NodeIP, e.Facts.System.Addresses); mismatch != "" {
					e.recordWarning(mismatch)
				}
				return nil
			}
			found = "its subnet is " + network.Subnet
		}
		if !e.Clock.Now().Before(deadline) {
			return &agentapi.Failure{Reason: agentapi.ReasonStepFailed, Message: fmt.Sprintf(
				"hybrid-overlay-node did not create HNS network %s with the subnet %s within %s (%s); see %s on the host",
				o.Network, o.Subnet, timeouts.NetworkTimeout, found, nodespec.LogDirectory(nodespec.ServiceHybridOverlay))}
		}
		e.reportProgress("waiting for hybrid-overlay-node to create HNS network %s with the subnet %s (%s)", o.Network, o.Subnet, found)
		if err := timeouts.Sleep(ctx, e.Clock, timeouts.PollInterval); err != nil {
			return err
		}
	}
}

func (e *Executor) createEndpoint(ctx context.Context, o plan.CreateEndpoint) error {
	_, err := e.Host.Networks.CreateEndpoint(ctx, o.Network, o.Name, o.Address)
	if errors.Is(err, host.ErrExist) {
		// The endpoint exists on another network, with a former subnet.
		if err := ignoreNotFound(e.Host.Networks.DeleteEndpoint(ctx, o.Name)); err != nil {
			return fmt.Errorf("delete the HNS endpoint %s of a former network: %w", o.Name, err)
		}
		_, err = e.Host.Networks.CreateEndpoint(ctx, o.Network, o.Name, o.Address)
	}
	if err != nil {
		return fmt.Errorf("create the HNS endpoint %s on %s: %w", o.Name, o.Network, err)
	}
	return nil
}
