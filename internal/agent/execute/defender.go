package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// Defender is Microsoft Defender Antivirus on one host, and what it answered last. Each question costs its service and
// WMI's some work, so the agent's service does not ask every minute.
type Defender struct {
	host    host.Antivirus
	clock   clock.WithTicker
	records state.Records

	keep  time.Duration    // for how long an answer is good; 0: not at all
	at    time.Time        // of the answer; zero when there is none
	named []host.Exclusion // that it was asked about
	facts plan.AntivirusFacts
}

func (d *Defender) forget() { d.at = time.Time{} }

// NewDefender returns Defender on a host. Each question is asked anew, until Keep says otherwise.
func NewDefender(antivirus host.Antivirus, clock clock.WithTicker, kept state.Records) *Defender {
	return &Defender{host: antivirus, clock: clock, records: kept}
}

// Keep has an answer be good for some time, as long as nothing else is asked and no exclusion changes.
func (d *Defender) Keep(answers time.Duration) { d.keep = answers }

// wasStopped reports whether a call failed because Defender was stopped meanwhile. A Defender that is at work may give
// that reason, too: then it is a failure as any other.
func (d *Defender) wasStopped(ctx context.Context, err error) bool {
	if !errors.Is(err, host.ErrNoAntivirus) {
		return false
	}
	atWork, askErr := d.host.AtWork(ctx)
	return askErr == nil && !atWork
}

// Facts looks at Defender. That it cannot be read keeps nobody from working: then it is as good as one that refuses
// changes.
func (d *Defender) Facts(ctx context.Context, spec nodespec.NodeSpec, ledger plan.Ledger) (plan.AntivirusFacts, error) {
	named := slices.Concat(spec.Exclusions, ledger.Exclusions)
	if len(named) == 0 {
		return plan.AntivirusFacts{}, nil
	}
	atWork, err := d.host.AtWork(ctx)
	if err != nil {
		return plan.AntivirusFacts{}, fmt.Errorf("check whether Microsoft Defender Antivirus is active: %w", err)
	}
	if !atWork {
		d.forget()
		return plan.AntivirusFacts{}, nil
	}
	now := d.clock.Now()
	if !d.at.IsZero() && now.Sub(d.at) < d.keep && slices.Equal(named, d.named) {
		return d.facts, nil
	}
	facts := plan.AntivirusFacts{AtWork: true}
	// WMI, on which the answer depends, is known to hang when its repository is damaged.
	asking, cancel := context.WithTimeout(ctx, timeouts.LimitAntivirus)
	defer cancel()
	list, err := d.host.Exclusions(asking)
	switch {
	case ctx.Err() != nil:
		return plan.AntivirusFacts{}, context.Cause(ctx)
	case d.wasStopped(ctx, err):
		return plan.AntivirusFacts{}, nil
	case err != nil:
		facts.Unknown = err.Error()
	default:
		facts.Exclusions = plan.NamedExclusions(list, ledger, spec)
	}
	d.at, d.named, d.facts = now, named, facts
	return facts, nil
}
