package upgrade

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// The WindowsDisruptionPolicy determines when nodes may be disrupted.
func TestDisruptionPolicy_IsFollowed(t *testing.T) {
	l := start(t, withoutMachines, testenv.Options{Hosts: testenv.Hosts(2), LinuxNodes: 1})
	o := l.startOperator(initial)
	l.requireNoError(l.ListHosts(t.Context()))
	l.waitUntilUpgraded(initial, 2, waitTimeout)

	t.Run("nothing is disturbed while it is paused", func(t *testing.T) {
		l := l.forSubtest(t)
		w := l.watchAvailability(nil)
		l.changePolicy(func(p *v1alpha1.WindowsDisruptionPolicySpec) { p.Paused = true })
		o = l.upgradeOperator(o, patch)
		l.waitForReason(v1alpha1.ReasonDisruptionsPaused)
		w.checkBudget(0, 0)
		l.waitForReadsOnly()
	})
	t.Run("nothing is disturbed outside of a maintenance window, and what waits for it does not ask all the time",
		func(t *testing.T) {
			l := l.forSubtest(t)
			w := l.watchAvailability(nil)
			l.changePolicy(func(p *v1alpha1.WindowsDisruptionPolicySpec) {
				p.Paused, p.MaintenanceWindows = false, []v1alpha1.MaintenanceWindow{newWindow(time.Now().Add(-2 * time.Hour))}
			})
			l.waitForReason(v1alpha1.ReasonOutsideMaintenanceWindow)
			w.checkBudget(0, 0)
			l.waitForReadsOnly()
		})
	t.Run("a window that opens lets the first node go, and the others when it has stayed Ready", func(t *testing.T) {
		l := l.forSubtest(t)
		const soak = 8 * time.Second
		w := l.watchAvailability(nil)
		l.changePolicy(func(p *v1alpha1.WindowsDisruptionPolicySpec) {
			p.CanarySoak = &metav1.Duration{Duration: soak}
			p.MaintenanceWindows = append(p.MaintenanceWindows, newWindow(time.Now()))
		})
		l.waitForAnyInstance("to wait for the canary", waitTimeout, func(i *v1alpha1.WindowsInstance) bool {
			return i.Status.Summary == v1alpha1.ReasonCanarySoaking || reasonOf(i) == v1alpha1.ReasonCanarySoaking
		})
		start := time.Now()
		l.waitUntilUpgraded(patch, 2, waitTimeout)
		if elapsed := time.Since(start); elapsed < soak-2*time.Second {
			t.Errorf("the second node followed after %s, and the first was to stay Ready for %s", elapsed, soak)
		}
		w.checkBudget(1, 0)
	})
	t.Run("one that cannot be followed disturbs nothing, and says what is wrong", func(t *testing.T) {
		l := l.forSubtest(t)
		w := l.watchAvailability(nil)
		l.changePolicy(func(p *v1alpha1.WindowsDisruptionPolicySpec) {
			p.CanarySoak, p.MaintenanceWindows = nil,
				[]v1alpha1.MaintenanceWindow{{Schedule: "at night", Duration: metav1.Duration{Duration: time.Hour}}}
		})
		o = l.upgradeOperator(o, patch2)
		l.waitForReason(v1alpha1.ReasonDisruptionPolicyInvalid)
		l.waitForPolicy("to be invalid", func(p *v1alpha1.WindowsDisruptionPolicy) bool {
			for _, c := range p.Status.Conditions {
				if c.Type == v1alpha1.ConditionValid {
					return c.Status == metav1.ConditionFalse && c.Message != ""
				}
			}
			return false
		})
		w.checkBudget(0, 0)
		l.changePolicy(func(p *v1alpha1.WindowsDisruptionPolicySpec) { p.MaintenanceWindows = nil })
		l.waitUntilUpgraded(patch2, 2, waitTimeout)
	})
}

// waitForReason waits until the instances of both hosts report the reason why their change waits.
func (l lab) waitForReason(reason string) {
	l.Helper()
	for _, h := range l.Hosts() {
		l.waitForFalse(h.Options.Name, v1alpha1.ConditionUpToDate, reason)
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

// newWindow returns a maintenance window that is open each day for an hour around a time.
func newWindow(at time.Time) v1alpha1.MaintenanceWindow {
	begins := at.UTC().Add(-30 * time.Minute)
	return v1alpha1.MaintenanceWindow{
		Schedule: fmt.Sprintf("%d %d * * *", begins.Minute(), begins.Hour()), Duration: metav1.Duration{Duration: time.Hour},
	}
}
