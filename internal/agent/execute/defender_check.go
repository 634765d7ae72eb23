package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Check describes the exclusions of Defender, or returns an error that names the scanned programs that should
// be excluded.
func (d *Defender) Check(ctx context.Context, spec nodespec.NodeSpec) (string, error) {
	active, err := d.host.IsActive(ctx)
	if err != nil {
		return "", fmt.Errorf("check whether Microsoft Defender Antivirus is active: %w", err)
	}
	const notActive = "Microsoft Defender Antivirus is not active"
	if !active {
		return notActive, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeouts.AntivirusTimeout)
	defer cancel()
	list, err := d.host.Exclusions(ctx)
	if d.wasStopped(ctx, err) {
		return notActive, nil
	}
	if err != nil {
		return "", fmt.Errorf("the exclusions of Microsoft Defender Antivirus cannot be read, so none are added; containers may start more slowly: %w", err)
	}
	var scanned []string
	for _, exclusion := range spec.Exclusions {
		if !slices.ContainsFunc(list, exclusion.Is) {
			scanned = append(scanned, exclusion.Value)
		}
	}
	if len(scanned) == 0 {
		return "Microsoft Defender Antivirus does not scan files opened by the container runtime", nil
	}
	message := "Microsoft Defender Antivirus scans files opened by " + strings.Join(scanned, " and ") + ", so containers start more slowly; " +
		"exclude these programs in the policy that manages Defender"
	if ledger, _, err := d.records.Ledger(ctx); err == nil && ledger.Refusal != nil {
		message += " (" + ledger.Refusal.Reason + ")"
	}
	return "", errors.New(message)
}
