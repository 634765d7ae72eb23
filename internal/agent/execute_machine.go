package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// absentIsFine makes the removal of what is not there succeed.
func absentIsFine(err error) error {
	if errors.Is(err, host.ErrNotExist) {
		return nil
	}
	return err
}

func (e *executor) enableFeature(ctx context.Context, feature string) error {
	err := e.within(ctx, LimitFeature, "Windows enables the feature "+feature, func(ctx context.Context) error {
		return e.host.Features.Enable(ctx, feature)
	})
	if errors.Is(err, host.ErrNotExist) {
		return fmt.Errorf("this edition of Windows does not have the feature %s: %w", feature, err)
	}
	return err
}

func (e *executor) disableFeature(ctx context.Context, feature string) error {
	return e.within(ctx, LimitFeature, "Windows disables the feature "+feature, func(ctx context.Context) error {
		return absentIsFine(e.host.Features.Disable(ctx, feature))
	})
}

func (e *executor) setEnvironment(ctx context.Context, o plan.SetEnvironment) error {
	if o.Unset {
		return e.host.Environment.Unset(ctx, o.Name)
	}
	return e.host.Environment.Set(ctx, o.Name, o.Value)
}

// trustCertificate puts an authority into Windows' store of roots, if it is the one that the spec says it is.
func (e *executor) trustCertificate(ctx context.Context, certificate nodespec.TrustedCertificate) error {
	if sum := plan.Digest(certificate.DER); !strings.EqualFold(sum, certificate.Fingerprint) {
		return fmt.Errorf("the certificate of %s in the NodeSpec has the fingerprint %s and not %s", certificate.Subject, sum, certificate.Fingerprint)
	}
	return e.host.Roots.Add(ctx, certificate.DER)
}

// distrustCertificate takes an authority out of Windows' store of roots. One that somebody else brings too is theirs from then on: the
// ledger says so, and nobody tries it again.
func (e *executor) distrustCertificate(ctx context.Context, fingerprint string) error {
	err := e.host.Roots.Remove(ctx, fingerprint)
	if !errors.Is(err, host.ErrRefused) || ctx.Err() != nil {
		return err
	}
	ledger, _, readErr := e.store.ledger(ctx)
	if readErr != nil {
		return readErr
	}
	if noteErr := e.store.setLedger(ctx, ledger.WithForeignCertificate(fingerprint)); noteErr != nil {
		return noteErr
	}
	e.advise("the node does not need the certificate authority any more and has taken away its own part, but others have the host trust it; " +
		"whoever does not want that takes it away there (" + err.Error() + ")")
	return nil
}

// killProcess ends a process if its ID still belongs to the same program.
func (e *executor) killProcess(ctx context.Context, process host.Process) error {
	if !strings.EqualFold(e.programOf(ctx, process.PID), process.Path) {
		return nil
	}
	if err := e.host.Processes.Kill(ctx, process.PID); err != nil {
		return fmt.Errorf("end process %d (%s): %w", process.PID, process.Path, err)
	}
	return nil
}

// awaitNetwork waits until hybrid-overlay-node has made the HNS network with the node's subnet.
func (e *executor) awaitNetwork(ctx context.Context, o plan.AwaitNetwork) error {
	deadline := e.clock.Now().Add(LimitNetwork)
	for {
		networks, err := e.host.Networks.Networks(ctx)
		if err != nil {
			return fmt.Errorf("list HNS networks: %w", err)
		}
		found := "there is no such network"
		for _, network := range networks {
			if !strings.EqualFold(network.Name, o.Network) {
				continue
			}
			if network.Subnet == o.Subnet {
				return nil
			}
			found = "it has the subnet " + network.Subnet
		}
		if !e.clock.Now().Before(deadline) {
			return &verb.Failure{Reason: verb.ReasonStepFailed, Message: fmt.Sprintf(
				`hybrid-overlay-node has not made the HNS network %s with the subnet %s within %s (%s); look at C:\var\log\hybrid-overlay-node on the host`,
				o.Network, o.Subnet, LimitNetwork, found)}
		}
		e.progress("waits for hybrid-overlay-node to make the HNS network %s with the subnet %s (%s)", o.Network, o.Subnet, found)
		if err := sleep(ctx, e.clock, PollInterval); err != nil {
			return err
		}
	}
}

func (e *executor) createEndpoint(ctx context.Context, o plan.CreateEndpoint) error {
	_, err := e.host.Networks.CreateEndpoint(ctx, o.Network, o.Name)
	if errors.Is(err, host.ErrExist) {
		// It is there on another network: that of a former subnet.
		if err := absentIsFine(e.host.Networks.DeleteEndpoint(ctx, o.Name)); err != nil {
			return fmt.Errorf("delete the HNS endpoint %s of a former network: %w", o.Name, err)
		}
		_, err = e.host.Networks.CreateEndpoint(ctx, o.Network, o.Name)
	}
	if err != nil {
		return fmt.Errorf("create the HNS endpoint %s on %s: %w", o.Name, o.Network, err)
	}
	return nil
}
