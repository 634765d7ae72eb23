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

// Defender is Microsoft Defender Antivirus on one host, with a cached response. Each query costs its service
// and WMI some work, so the agent's service does not query every minute.
type Defender struct {
	host    host.Antivirus
	clock   clock.WithTicker
	records state.Records

	cacheTTL time.Duration    // validity of a response; 0 disables caching
	at       time.Time        // time of the response; zero if there is none
	named    []host.Exclusion // the exclusions of the query
	facts    plan.AntivirusFacts
}

func (d *Defender) clearCache() { d.at = time.Time{} }

// NewDefender returns the Defender of a host. Responses are not cached unless EnableCache is called.
func NewDefender(antivirus host.Antivirus, clock clock.WithTicker, kept state.Records) *Defender {
	return &Defender{host: antivirus, clock: clock, records: kept}
}

// EnableCache caches responses for the given time, as long as the query and the exclusions are unchanged.
func (d *Defender) EnableCache(answers time.Duration) { d.cacheTTL = answers }

// wasStopped reports whether a call failed because Defender was stopped in the meantime. An active Defender may
// return the same error: then the call failed like any other.
func (d *Defender) wasStopped(ctx context.Context, err error) bool {
	if !errors.Is(err, host.ErrNoAntivirus) {
		return false
	}
	active, askErr := d.host.IsActive(ctx)
	return askErr == nil && !active
}

// Facts returns the state of Defender. An unreadable Defender does not stop the agent and is handled like a
// Defender that refuses changes.
func (d *Defender) Facts(ctx context.Context, spec nodespec.NodeSpec, ledger plan.Ledger) (plan.AntivirusFacts, error) {
	named := slices.Concat(spec.Exclusions, ledger.Exclusions)
	if len(named) == 0 {
		return plan.AntivirusFacts{}, nil
	}
	active, err := d.host.IsActive(ctx)
	if err != nil {
		return plan.AntivirusFacts{}, fmt.Errorf("check whether Microsoft Defender Antivirus is active: %w", err)
	}
	if !active {
		d.clearCache()
		return plan.AntivirusFacts{}, nil
	}
	now := d.clock.Now()
	if !d.at.IsZero() && now.Sub(d.at) < d.cacheTTL && slices.Equal(named, d.named) {
		return d.facts, nil
	}
	facts := plan.AntivirusFacts{Active: true}
	// WMI, which provides the response, is known to hang when its repository is damaged.
	asking, cancel := context.WithTimeout(ctx, timeouts.AntivirusTimeout)
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
