package fake

import (
	"slices"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

//
func TestDefender(t *testing.T) {
	excluded := host.Exclusion{Kind: host.ExcludeProcess, Value: `C:\k\containerd.exe`}
	isActive := func(r *rig) bool {
		r.Helper()
		active, err := r.Antivirus.IsActive(r.ctx)
		r.requireNoError(err)
		return active
	}
	t.Run("is at work on a fresh server", func(t *testing.T) {
		if !isActive(bootMachine(t, nil)) {
			t.Error("it is not")
		}
	})
	t.Run("tells and changes nothing while it is stopped, but keeps its exclusions, also over a restart",
		func(t *testing.T) {
			r := bootMachine(t, nil)
			r.requireNoError(r.Antivirus.AddExclusion(r.ctx, excluded))
			r.requireNoError(r.Services.Stop(r.ctx, host.DefenderService))
			if isActive(r) {
				t.Error("it is at work")
			}
			_, err := r.Antivirus.Exclusions(r.ctx)
			r.requireError(err, host.ErrNoAntivirus)
			r.requireError(r.Antivirus.AddExclusion(r.ctx, excluded), host.ErrNoAntivirus)
			r.requireError(r.Antivirus.RemoveExclusion(r.ctx, excluded), host.ErrNoAntivirus)
			before := r.BootID()
			r.requireNoError(r.Power.Reboot(r.ctx, "test"))
			r.requireNoError(r.WaitFor(r.ctx, func(m *Machine) bool { return m.BootID() != before && m.IsRunning() }))
			list, err := r.Antivirus.Exclusions(r.ctx)
			r.requireNoError(err)
			if !slices.Contains(list, excluded) || !slices.Contains(r.Snapshot().Exclusions, excluded) {
				t.Error(list)
			}
		})
	t.Run("refuses changes and hides its exclusions when it is set so", func(t *testing.T) {
		r := bootMachine(t, nil)
		restore := r.RefuseExclusionChanges()
		r.requireError(r.Antivirus.AddExclusion(r.ctx, excluded), host.ErrRefused)
		restore()
		r.requireNoError(r.Antivirus.AddExclusion(r.ctx, excluded))
		r.HideExclusions()
		_, err := r.Antivirus.Exclusions(r.ctx)
		r.requireError(err, host.ErrRefused)
	})
}
