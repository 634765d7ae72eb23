package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// antivirusView is what Microsoft Defender Antivirus answered last. Each question costs its service and WMI's some work, so the agent's
// service does not ask every minute.
type antivirusView struct {
	keep  time.Duration    // for how long an answer is good; 0: not at all
	at    time.Time        // of the answer; zero when there is none
	named []host.Exclusion // that it was asked about
	facts plan.AntivirusFacts
}

func (v *antivirusView) forget() { v.at = time.Time{} }

// antivirus looks at Defender. That it cannot be read keeps nobody from working: then it is as good as one that refuses changes.
func (g *gatherer) antivirus(ctx context.Context) error {
	named := slices.Concat(g.spec.Exclusions, g.facts.Ledger.Exclusions)
	if len(named) == 0 {
		return nil
	}
	atWork, err := g.host.Antivirus.AtWork(ctx)
	if err != nil {
		return fmt.Errorf("ask whether Microsoft Defender Antivirus is at work: %w", err)
	}
	seen := &g.seen
	if !atWork {
		seen.forget()
		return nil
	}
	now := g.clock.Now()
	if !seen.at.IsZero() && now.Sub(seen.at) < seen.keep && slices.Equal(named, seen.named) {
		g.facts.Antivirus = seen.facts
		return nil
	}
	facts := plan.AntivirusFacts{AtWork: true}
	// WMI, on which the answer depends, is known to hang when its repository is damaged.
	asking, cancel := context.WithTimeout(ctx, LimitAntivirus)
	defer cancel()
	list, err := g.host.Antivirus.Exclusions(asking)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, host.ErrNoAntivirus):
		return nil // it was stopped meanwhile
	case err != nil:
		facts.Unknown = err.Error()
	default:
		facts.Exclusions = plan.NamedExclusions(list, g.facts.Ledger, g.spec)
	}
	g.facts.Antivirus = facts
	seen.at, seen.named, seen.facts = now, named, facts
	return nil
}

// addExclusion notes in the ledger that the exclusion is ours before it is.
func (e *executor) addExclusion(ctx context.Context, exclusion host.Exclusion) error {
	ledger, _, err := e.store.ledger(ctx)
	if err != nil {
		return err
	}
	ours := ledger.WithExclusion(exclusion)
	if err := e.store.setLedger(ctx, ours); err != nil {
		return err
	}
	err = e.askAntivirus(ctx, func(ctx context.Context) error { return e.host.Antivirus.AddExclusion(ctx, exclusion) })
	if errors.Is(err, host.ErrRefused) {
		ours = ledger // after any other error it may be there
	}
	return e.tolerate(ctx, ours, err, "does not leave out what "+exclusion.Value+" opens, so containers start more slowly; "+
		"exclude that program in the policy that manages Defender")
}

func (e *executor) removeExclusion(ctx context.Context, exclusion host.Exclusion) error {
	ledger, _, err := e.store.ledger(ctx)
	if err != nil {
		return err
	}
	err = e.askAntivirus(ctx, func(ctx context.Context) error { return e.host.Antivirus.RemoveExclusion(ctx, exclusion) })
	return e.tolerate(ctx, ledger, err, "keeps its exclusion of "+exclusion.Value+"; take it away by hand")
}

func (e *executor) askAntivirus(ctx context.Context, change func(context.Context) error) error {
	e.seen.forget()
	return e.within(ctx, LimitAntivirus, "Microsoft Defender Antivirus changes its exclusions", change)
}

// tolerate goes on after Defender did not do what it was asked to: the host works without. It notes that in the ledger, so that it is not
// asked again at once, and says so with the step.
func (e *executor) tolerate(ctx context.Context, ledger plan.Ledger, err error, consequence string) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return err
	case errors.Is(err, host.ErrNoAntivirus):
		return nil // it was stopped meanwhile
	}
	ledger.Refusal = &plan.Refusal{BootID: e.facts.System.BootID, Reason: err.Error()}
	if err := e.store.setLedger(ctx, ledger); err != nil {
		return err
	}
	e.advise("Microsoft Defender Antivirus " + consequence + " (" + ledger.Refusal.Reason + ")")
	return nil
}

// exclusions checks what Defender leaves out of its scans.
func (c *checker) exclusions(ctx context.Context) (string, error) {
	atWork, err := c.host.Antivirus.AtWork(ctx)
	if err != nil {
		return "", fmt.Errorf("ask whether Microsoft Defender Antivirus is at work: %w", err)
	}
	if !atWork {
		return "Microsoft Defender Antivirus is not at work", nil
	}
	ctx, cancel := context.WithTimeout(ctx, LimitAntivirus)
	defer cancel()
	list, err := c.host.Antivirus.Exclusions(ctx)
	if err != nil {
		return "", fmt.Errorf("what Microsoft Defender Antivirus excludes cannot be read, so nothing is added to it; containers may start more slowly: %w", err)
	}
	var scanned []string
	for _, exclusion := range c.spec.Exclusions {
		if !slices.ContainsFunc(list, exclusion.Is) {
			scanned = append(scanned, exclusion.Value)
		}
	}
	if len(scanned) == 0 {
		return "Microsoft Defender Antivirus does not scan what the container runtime opens", nil
	}
	message := "Microsoft Defender Antivirus scans what " + strings.Join(scanned, " and ") + " open, so containers start more slowly; " +
		"exclude these programs in the policy that manages Defender"
	if ledger, _, err := c.store.ledger(ctx); err == nil && ledger.Refusal != nil {
		message += " (" + ledger.Refusal.Reason + ")"
	}
	return "", errors.New(message)
}
