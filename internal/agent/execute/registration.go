package execute

import (
	"context"
	"strings"

	"github.com/windows-machine-config/wmco/internal/plan"
)

// attachEndpoint attaches the endpoint to the host, and keeps its new adapter out of DNS at once. If the second fails, or
// the adapter takes time to appear, the next plan has a step for it.
func (e *Executor) attachEndpoint(ctx context.Context, name string) error {
	if err := e.Host.Networks.AttachEndpoint(ctx, name); err != nil {
		return err
	}
	endpoints, _ := e.Host.Networks.Endpoints(ctx)
	for _, endpoint := range endpoints {
		if strings.EqualFold(endpoint.Name, name) && endpoint.Adapter != "" {
			_ = e.setRegistration(ctx, endpoint.Adapter)
		}
	}
	return nil
}

// disableRegistration keeps an adapter out of DNS. A node works without that too: a failure is recorded in the ledger, so
// that the step is not repeated before the next boot, and reported.
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
	e.advise("the adapter continues to register in DNS (" + err.Error() +
		"): remove its address from the records of the host's name, if programs other than the operator use them")
	return nil
}

func (e *Executor) setRegistration(ctx context.Context, adapter string) error {
	return e.Host.Registry.SetNumber(ctx, plan.RegistrationName(adapter), plan.RegistrationDisabled)
}
