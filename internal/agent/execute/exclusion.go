package execute

import (
	"context"
	"errors"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// addExclusion adds an exclusion. The ledger records the exclusion before it exists. If Defender refuses, the
// step does not fail but advises the administrator.
func (e *Executor) addExclusion(ctx context.Context, exclusion host.Exclusion) error {
	ledger, _, err := e.Records.Ledger(ctx)
	if err != nil {
		return err
	}
	ours := ledger.WithExclusion(exclusion)
	if err := e.Records.SetLedger(ctx, ours); err != nil {
		return err
	}
	err = e.changeExclusions(ctx, func(ctx context.Context) error { return e.Antivirus.host.AddExclusion(ctx, exclusion) })
	if errors.Is(err, host.ErrRefused) {
		ours = ledger // after any other error the exclusion may exist
	}
	if e.Antivirus.wasStopped(ctx, err) {
		return nil // a stopped Defender scans nothing
	}
	return e.ignoreFailure(ctx, ours, err, "does not exclude files opened by "+exclusion.Value+
		", so containers start more slowly; exclude that program in the policy that manages Defender")
}

// removeExclusion removes an exclusion, and advises like addExclusion.
func (e *Executor) removeExclusion(ctx context.Context, exclusion host.Exclusion) error {
	ledger, _, err := e.Records.Ledger(ctx)
	if err != nil {
		return err
	}
	err = e.changeExclusions(ctx, func(ctx context.Context) error { return e.Antivirus.host.RemoveExclusion(ctx, exclusion) })
	consequence := "keeps its exclusion of " + exclusion.Value + "; remove it manually"
	if e.Antivirus.wasStopped(ctx, err) {
		e.warnAboutDefender(consequence, err.Error())
		return nil // nothing is left to retry
	}
	return e.ignoreFailure(ctx, ledger, err, consequence)
}

func (e *Executor) changeExclusions(ctx context.Context, action func(context.Context) error) error {
	e.Antivirus.clearCache()
	return e.withProgress(ctx, timeouts.AntivirusTimeout, "changing the exclusions of Microsoft Defender Antivirus", action)
}

// ignoreFailure continues after a failed change of Defender: the host works without the change. The refusal is
// recorded in the ledger, so that Defender is not called again before the next boot, and reported as advice.
func (e *Executor) ignoreFailure(ctx context.Context, ledger plan.Ledger, err error, consequence string) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	ledger.Refusal = &plan.Refusal{BootID: e.Facts.System.BootID, Reason: err.Error()}
	if err := e.Records.SetLedger(ctx, ledger); err != nil {
		return err
	}
	e.warnAboutDefender(consequence, ledger.Refusal.Reason)
	return nil
}

func (e *Executor) warnAboutDefender(consequence, reason string) {
	e.recordWarning("Microsoft Defender Antivirus " + consequence + " (" + reason + ")")
}
