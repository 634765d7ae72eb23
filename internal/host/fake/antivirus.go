package fake

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// defenderPath is the executable of Microsoft Defender Antivirus on a fresh server.
const defenderPath = `C:\Program Files\Windows Defender\` + host.DefenderProgram

// defender is the state of Microsoft Defender Antivirus, guarded by the machine's lock.
type defender struct {
	exclusions []host.Exclusion
	refuses    bool // rejects changes
	hides      bool // hides exclusions
}

// antivirus implements host.Antivirus for one process.
type antivirus struct{ p *Process }

func (a antivirus) IsActive(ctx context.Context) (active bool, err error) {
	err = a.p.runOperation(ctx, "Antivirus", "IsActive", "", func(m *Machine) error { active = m.isDefenderActive(); return nil })
	return active, err
}

func (m *Machine) isDefenderActive() bool {
	return host.IsDefenderActive(m.queryServices([]string{host.DefenderService}), m.processList())
}

func (a antivirus) Exclusions(ctx context.Context) (list []host.Exclusion, err error) {
	err = a.p.runOperation(ctx, "Antivirus", "Exclusions", "", func(m *Machine) error {
		if err := m.checkExclusionsReadable(); err != nil {
			return fmt.Errorf("read the exclusions: %w", err)
		}
		list = slices.Clone(m.defender.exclusions)
		return nil
	})
	return list, err
}

func (a antivirus) AddExclusion(ctx context.Context, exclusion host.Exclusion) error {
	return a.changeExclusions(ctx, "AddExclusion", exclusion, func(d *defender, known bool) string {
		if known {
			return ""
		}
		d.exclusions = append(d.exclusions, exclusion)
		return "exclude"
	})
}

func (a antivirus) RemoveExclusion(ctx context.Context, exclusion host.Exclusion) error {
	return a.changeExclusions(ctx, "RemoveExclusion", exclusion, func(d *defender, known bool) string {
		if !known {
			return ""
		}
		d.exclusions = slices.DeleteFunc(d.exclusions, exclusion.Is)
		return "scan again"
	})
}

// checkExclusionsReadable returns the error of reading the exclusions; changes read the list first. The list is a
// property of the single instance of a WMI class.
func (m *Machine) checkExclusionsReadable() error {
	switch {
	case !m.isDefenderActive():
		return host.ErrNoAntivirus
	case m.defender.hides:
		return host.ErrRefused
	}
	return m.faults.readList(AntivirusList, 1)
}

// changeExclusions modifies the exclusions. do returns a verb for the journal, or an empty string if nothing changed.
func (a antivirus) changeExclusions(ctx context.Context, method string, exclusion host.Exclusion,
	do func(d *defender, known bool) string) error {
	return a.p.runOperation(ctx, "Antivirus", method, exclusion.Value, func(m *Machine) error {
		if err := m.admitsExclusion(exclusion); err != nil {
			return fmt.Errorf("%s %s: %w", method, exclusion.Value, err)
		}
		if done := do(&m.defender, slices.ContainsFunc(m.defender.exclusions, exclusion.Is)); done != "" {
			a.p.recordEntry(KindAntivirus, fmt.Sprintf("%s %s %s", done, strings.ToLower(string(exclusion.Kind)), exclusion.Value), 0)
		}
		return nil
	})
}

func (m *Machine) admitsExclusion(exclusion host.Exclusion) error {
	if exclusion.Value == "" || exclusion.Kind != host.ExcludeProcess && exclusion.Kind != host.ExcludePath {
		return fmt.Errorf("%w (unknown kind %q or empty value)", errParameter, exclusion.Kind)
	}
	if err := m.checkExclusionsReadable(); err != nil {
		return err
	}
	if m.defender.refuses {
		return host.ErrRefused
	}
	return nil
}

// Exclusions returns the exclusions of Microsoft Defender Antivirus, active or not. Exclusions persist across
// reboots.
func (m *Machine) Exclusions() []host.Exclusion {
	m.lock()
	defer m.unlock()
	return slices.Clone(m.defender.exclusions)
}

// RefuseExclusionChanges makes Defender reject changes of its exclusions, as tamper protection does, until restore is
// called.
func (m *Machine) RefuseExclusionChanges() (restore func()) {
	m.lock()
	defer m.unlock()
	m.defender.refuses = true
	return func() {
		m.lock()
		defer m.unlock()
		m.defender.refuses = false
	}
}

// HideExclusions makes Defender hide its exclusions, as the policy HideExclusionsFromLocalAdmins does.
func (m *Machine) HideExclusions() {
	m.lock()
	defer m.unlock()
	m.defender.hides = true
}
