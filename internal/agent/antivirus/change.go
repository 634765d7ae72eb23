package antivirus

import (
	"context"
	"errors"

	"github.com/windows-machine-config/wmco/internal/agent/timing"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// Turn is the step in which an exclusion changes.
type Turn struct {
	// BootID identifies the present boot. After a refusal, Defender is not asked again before the next boot.
	BootID string
	// Tell takes a sign of life while Defender changes its exclusions.
	Tell timing.Tell
}

// Add adds an exclusion. It notes in the ledger that the exclusion is ours before it is. The advice is empty, or says
// what an administrator can do about a Defender that refuses.
func (d *Defender) Add(ctx context.Context, exclusion host.Exclusion, turn Turn) (advice string, err error) {
	ledger, _, err := d.records.Ledger(ctx)
	if err != nil {
		return "", err
	}
	ours := ledger.WithExclusion(exclusion)
	if err := d.records.SetLedger(ctx, ours); err != nil {
		return "", err
	}
	err = d.change(ctx, turn, func(ctx context.Context) error { return d.host.AddExclusion(ctx, exclusion) })
	if errors.Is(err, host.ErrRefused) {
		ours = ledger // after any other error it may be there
	}
	if d.wasStopped(ctx, err) {
		return "", nil // it scans nothing
	}
	return d.tolerate(ctx, turn, ours, err, "does not leave out what "+exclusion.Value+
		" opens, so containers start more slowly; exclude that program in the policy that manages Defender")
}

// Remove removes an exclusion. The advice is as that of Add.
func (d *Defender) Remove(ctx context.Context, exclusion host.Exclusion, turn Turn) (advice string, err error) {
	ledger, _, err := d.records.Ledger(ctx)
	if err != nil {
		return "", err
	}
	err = d.change(ctx, turn, func(ctx context.Context) error { return d.host.RemoveExclusion(ctx, exclusion) })
	consequence := "keeps its exclusion of " + exclusion.Value + "; take it away by hand"
	if d.wasStopped(ctx, err) {
		return formatAdvice(consequence, err.Error()), nil // nothing is left to try again
	}
	return d.tolerate(ctx, turn, ledger, err, consequence)
}

func (d *Defender) change(ctx context.Context, turn Turn, action func(context.Context) error) error {
	d.forget()
	work := timing.Work{
		Limit: timing.LimitAntivirus, What: "Microsoft Defender Antivirus changes its exclusions", Tell: turn.Tell,
	}
	return work.Run(ctx, d.clock, action)
}

// tolerate goes on after Defender did not do what it was asked to: the host works without. It notes that in the ledger,
// so that it is not asked again at once, and returns the advice.
func (d *Defender) tolerate(
	ctx context.Context, turn Turn, ledger plan.Ledger, err error, consequence string,
) (advice string, _ error) {
	switch {
	case err == nil:
		return "", nil
	case ctx.Err() != nil:
		return "", err
	}
	ledger.Refusal = &plan.Refusal{BootID: turn.BootID, Reason: err.Error()}
	if err := d.records.SetLedger(ctx, ledger); err != nil {
		return "", err
	}
	return formatAdvice(consequence, ledger.Refusal.Reason), nil
}

func formatAdvice(consequence, reason string) string {
	return "Microsoft Defender Antivirus " + consequence + " (" + reason + ")"
}
