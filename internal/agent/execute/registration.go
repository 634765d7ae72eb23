package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// attachEndpoint attaches the endpoint to the host and waits until the host shows the attachment. HNS may
// refuse the first attempts after it created the endpoint. Source: flannel-io/flannel issue 1112.
func (e *Executor) attachEndpoint(ctx context.Context, name string) error {
	deadline := e.Clock.Now().Add(timeouts.AttachTimeout)
	for {
		err := e.tryAttach(ctx, name)
		if err == nil || errors.Is(err, host.ErrNotExist) || !e.Clock.Now().Before(deadline) {
			return err
		}
		e.reportProgress("waiting for HNS to attach endpoint %s to the host (%v)", name, err)
		if err := timeouts.Sleep(ctx, e.Clock, timeouts.PollInterval); err != nil {
			return err
		}
	}
}

// tryAttach attaches the endpoint and immediately disables the DNS registration of its new adapter. If
// disabling fails, or the adapter appears later, the next plan has a step for the adapter.
func (e *Executor) tryAttach(ctx context.Context, name string) error {
	if err := e.Host.Networks.AttachEndpoint(ctx, name); err != nil {
		return err
	}
	endpoints, err := e.Host.Networks.Endpoints(ctx)
	if err != nil {
		return nil //nolint:nilerr // it is attached; the next plan lists the endpoints again
	}
	i := slices.IndexFunc(endpoints, func(each host.HNSEndpoint) bool { return strings.EqualFold(each.Name, name) })
	if i < 0 {
		return fmt.Errorf("HNS endpoint %s: %w", name, host.ErrNotExist)
	}
	if !endpoints[i].Attached {
		return fmt.Errorf("HNS reports that the endpoint %s is attached to the host, but the host has no adapter with its address", name)
	}
	if endpoints[i].Adapter != "" {
		_ = e.setRegistration(ctx, endpoints[i].Adapter)
	}
	return nil
}

// disableRegistration disables the DNS registration of an adapter. A node works without that: a failure is
// recorded in the ledger, so that the step is not repeated before the next boot, and reported.
func (e *Executor) disableRegistration(ctx context.Context, o plan.DisableDNSRegistration) error {
	err := e.setRegistration(ctx, o.Adapter)
	if err == nil || ctx.Err() != nil {
		return err
	}
	ledger, _, readErr := e.Records.Ledger(ctx)
	if readErr != nil {
		return readErr
	}
	ledger.RegistrationRefusal = &plan.Refusal{BootID: e.Facts.System.BootID, Reason: err.Error()}
	if writeErr := e.Records.SetLedger(ctx, ledger); writeErr != nil {
		return writeErr
	}
	e.recordWarning("the adapter of kube-proxy's endpoint continues to register its address in DNS (" + err.Error() +
		"); remove that address from the DNS records of the host if other programs use these records")
	return nil
}

func (e *Executor) setRegistration(ctx context.Context, adapter string) error {
	return e.Host.Registry.SetNumber(ctx, plan.RegistrationName(adapter), plan.RegistrationDisabled)
}
