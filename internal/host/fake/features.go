package fake

import (
	"context"
	"fmt"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

type feature struct {
	name   string
	state  host.FeatureState
	reboot bool // a change takes effect after a reboot
}

// newFeatures returns the optional features of Windows Server that the product uses, and a few unrelated features.
func newFeatures(system host.SystemInfo, override map[string]host.FeatureState) map[string]*feature {
	all := []feature{
		{"Containers", host.FeatureDisabled, true},
		{"Microsoft-Hyper-V", host.FeatureDisabled, true},
		{"HypervisorPlatform", host.FeatureDisabled, true},
		{"VirtualMachinePlatform", host.FeatureDisabled, true},
		{"SMB1Protocol", host.FeatureDisabled, true},
		{"TelnetClient", host.FeatureDisabled, false},
		{"NetFx4", host.FeatureEnabled, false},
		{"Windows-Defender", host.FeatureEnabled, true},
	}
	if system.Version == WindowsServer2025().Version {
		all = append(all, feature{hnsFeature, host.FeatureDisabled, true}, feature{vfpFeature, host.FeatureDisabled, true})
	}
	features := map[string]*feature{}
	for _, f := range all {
		features[foldCase(f.name)] = &f
	}
	for name, state := range override {
		if state == host.FeatureUnknown {
			delete(features, foldCase(name))
			continue
		}
		if features[foldCase(name)] == nil {
			features[foldCase(name)] = &feature{name: name, reboot: true}
		}
		features[foldCase(name)].state = state
	}
	return features
}

func (m *Machine) hasPendingFeature() bool {
	for _, f := range m.features {
		if f.state == host.FeatureEnablePending || f.state == host.FeatureDisablePending {
			return true
		}
	}
	return false
}

// applyPendingFeatures applies pending changes.
func (m *Machine) applyPendingFeatures() {
	for _, f := range m.features {
		switch f.state {
		case host.FeatureEnablePending:
			f.state = host.FeatureEnabled
		case host.FeatureDisablePending:
			f.state = host.FeatureDisabled
		default:
			continue
		}
		m.journal.Append(KindFeature, f.name+" is "+string(f.state), 0)
	}
}

// featureSet implements host.Features for one process.
type featureSet struct{ p *Process }

func (s featureSet) State(ctx context.Context, name string) (state host.FeatureState, err error) {
	if err := s.awaitDISM(ctx, false); err != nil {
		return host.FeatureUnknown, fmt.Errorf("State %s: %w", name, err)
	}
	err = s.p.runOperation(ctx, "Features", "State", name, func(m *Machine) error {
		state = host.FeatureUnknown
		if f := m.features[foldCase(name)]; f != nil {
			state = f.state
		}
		return nil
	})
	return state, err
}

func (s featureSet) Enable(ctx context.Context, name string) error {
	return s.changeState(ctx, "Enable", name, host.FeatureEnabled, host.FeatureEnablePending, host.FeatureDisablePending)
}

func (s featureSet) Disable(ctx context.Context, name string) error {
	return s.changeState(ctx, "Disable", name, host.FeatureDisabled, host.FeatureDisablePending, host.FeatureEnablePending)
}

// changeState switches a feature to a state, through pending if a reboot is needed. A pending change to the opposite
// state is reverted. An interrupted change has no effect.
func (s featureSet) changeState(ctx context.Context, method, name string, wanted, pending,
	opposite host.FeatureState) error {
	var there bool
	err := s.p.runOperation(ctx, "Features", method, name, func(m *Machine) error {
		f := m.features[foldCase(name)]
		if f == nil {
			return fmt.Errorf("%s %s: %w", method, name, errFeatureName)
		}
		there = f.state == wanted || f.state == pending
		return nil
	})
	if err != nil || there {
		return err
	}
	// A change waits until DISM has stopped, even when canceled.
	if err := s.awaitDISM(context.WithoutCancel(ctx), true); err != nil {
		return fmt.Errorf("%s %s: %w", method, name, err)
	}
	if err := s.p.Machine.awaitFeatureChange(ctx, s.p); err != nil {
		return fmt.Errorf("%s %s: %w", method, name, err)
	}
	return s.p.runLocked(func(m *Machine) error {
		f := m.features[foldCase(name)]
		switch {
		case f.state == wanted || f.state == pending:
			return nil // changed by another process in the meantime
		case f.state == opposite || !f.reboot:
			f.state = wanted
		default:
			f.state = pending
		}
		s.p.recordEntry(KindFeature, method+" "+f.name+": "+string(f.state), 0)
		return nil
	})
}

// awaitDISM waits while DISM hangs, if the operation is a change or a change has already hung.
func (s featureSet) awaitDISM(ctx context.Context, change bool) error {
	var mended chan struct{}
	err := s.p.runLocked(func(m *Machine) error {
		if hung := m.faults.dism; hung != nil && (hung.changes || change) {
			mended, hung.changes = hung.repaired, true
		}
		return nil
	})
	if err != nil || mended == nil {
		return err
	}
	ctx, cancel := s.p.processContext(ctx)
	defer cancel()
	select {
	case <-mended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// awaitFeatureChange waits for the duration of a feature change, unless the requesting process ends or ctx is done.
func (m *Machine) awaitFeatureChange(ctx context.Context, p *Process) error {
	if m.options.FeatureDuration <= 0 {
		return nil
	}
	ctx, cancel := p.processContext(ctx)
	defer cancel()
	timer := m.clock.NewTimer(m.options.FeatureDuration)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// checkHostName returns an error unless Windows accepts the name as a DNS host name.
func checkHostName(name string) error {
	allowed := func(r rune) bool {
		return r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	if name == "" || len(name) > 63 || strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") ||
		strings.ContainsFunc(name, func(r rune) bool { return !allowed(r) }) || strings.Trim(name, "0123456789") == "" {
		return errHostName
	}
	return nil
}
