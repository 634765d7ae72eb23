package upgrade

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/rig"
)

// The WindowsDisruptionPolicy determines when nodes may be disrupted.
func TestThePolicyIsFollowed(t *testing.T) {
	l := start(t, withoutMachines, rig.Options{Hosts: rig.Hosts(2), LinuxNodes: 1})
	o := l.operate(initial)
	l.must(l.ListHosts(t.Context()))
	l.upgraded(initial, 2, limit)

	t.Run("nothing is disturbed while it is paused", func(t *testing.T) {
		l := l.in(t)
		w := l.watch(nil)
		l.policy(func(p *v1alpha1.WindowsDisruptionPolicySpec) { p.Paused = true })
		o = l.raise(o, patch)
		l.waits(v1alpha1.ReasonDisruptionsPaused)
		w.kept(0, 0)
		l.still()
	})
	t.Run("nothing is disturbed outside of a maintenance window, and what waits for it does not ask all the time",
		func(t *testing.T) {
			l := l.in(t)
			w := l.watch(nil)
			l.policy(func(p *v1alpha1.WindowsDisruptionPolicySpec) {
				p.Paused, p.MaintenanceWindows = false, []v1alpha1.MaintenanceWindow{window(time.Now().Add(-2 * time.Hour))}
			})
			l.waits(v1alpha1.ReasonOutsideMaintenanceWindow)
			w.kept(0, 0)
			l.still()
		})
	t.Run("a window that opens lets the first node go, and the others when it has stayed Ready", func(t *testing.T) {
		l := l.in(t)
		const soak = 8 * time.Second
		w := l.watch(nil)
		l.policy(func(p *v1alpha1.WindowsDisruptionPolicySpec) {
			p.CanarySoak = &metav1.Duration{Duration: soak}
			p.MaintenanceWindows = append(p.MaintenanceWindows, window(time.Now()))
		})
		l.anyInstance("to wait for the canary", limit, func(i *v1alpha1.WindowsInstance) bool {
			return i.Status.Summary == v1alpha1.ReasonCanarySoaking || reasonOf(i) == v1alpha1.ReasonCanarySoaking
		})
		began := time.Now()
		l.upgraded(patch, 2, limit)
		if took := time.Since(began); took < soak-2*time.Second {
			t.Errorf("the second node followed after %s, and the first was to stay Ready for %s", took, soak)
		}
		w.kept(1, 0)
	})
	t.Run("one that cannot be followed disturbs nothing, and says what is wrong", func(t *testing.T) {
		l := l.in(t)
		w := l.watch(nil)
		l.policy(func(p *v1alpha1.WindowsDisruptionPolicySpec) {
			p.CanarySoak, p.MaintenanceWindows = nil,
				[]v1alpha1.MaintenanceWindow{{Schedule: "at night", Duration: metav1.Duration{Duration: time.Hour}}}
		})
		o = l.raise(o, patch2)
		l.waits(v1alpha1.ReasonDisruptionPolicyInvalid)
		l.policyBecomes("to be invalid", func(p *v1alpha1.WindowsDisruptionPolicy) bool {
			for _, c := range p.Status.Conditions {
				if c.Type == v1alpha1.ConditionValid {
					return c.Status == metav1.ConditionFalse && c.Message != ""
				}
			}
			return false
		})
		w.kept(0, 0)
		l.policy(func(p *v1alpha1.WindowsDisruptionPolicySpec) { p.MaintenanceWindows = nil })
		l.upgraded(patch2, 2, limit)
	})
}

// waits waits until the instances of both hosts report the reason why their change waits.
func (l lab) waits(reason string) {
	l.Helper()
	for _, h := range l.Hosts() {
		l.says(h.Options.Name, v1alpha1.ConditionUpToDate, reason)
	}
}

func reasonOf(i *v1alpha1.WindowsInstance) string {
	for _, c := range i.Status.Conditions {
		if c.Type == v1alpha1.ConditionUpToDate {
			return c.Reason
		}
	}
	return ""
}

// window returns a maintenance window that is open each day for an hour around a time.
func window(at time.Time) v1alpha1.MaintenanceWindow {
	begins := at.UTC().Add(-30 * time.Minute)
	return v1alpha1.MaintenanceWindow{
		Schedule: fmt.Sprintf("%d %d * * *", begins.Minute(), begins.Hour()), Duration: metav1.Duration{Duration: time.Hour},
	}
}
