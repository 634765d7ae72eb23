package instance

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
)

//
func TestAwaitRestart_WaitsUntilHostIsDown(t *testing.T) {
	const before, after = "boot-1", "boot-2"
	for sentence, test := range map[string]struct {
		boot  string
		since time.Duration
		reboots,
		waits bool
	}{
		"a host that still answers from before its restart is waited for": {boot: before, since: 5 * time.Second,
			reboots: true, waits: true},
		"a moment before the limit it is waited for still": {boot: before,
			since: bootIDTimeout - time.Second, reboots: true, waits: true},
		"at the limit it has not restarted after all, and is asked again": {boot: before,
			since: bootIDTimeout, reboots: true},
		"a host that is back is gone on with at once": {boot: after, since: 5 * time.Second,
			reboots: true},
		"a host that is back late is gone on with": {boot: after, since: time.Hour,
			reboots: true},
		"a host that nobody restarts is not waited for, whatever its boot id": {boot: before, since: time.Second},
		"nor is one that has restarted by itself":                             {boot: after, since: time.Second},
	} {
		t.Run(sentence, func(t *testing.T) {
			instance := machineInstance()
			instance.Status.Host = &v1alpha1.HostStatus{BootID: before}
			if test.reboots {
				instance.Status.RestartStartedAt = ptr.To(metav1.NewTime(noon.Add(-test.since)))
			}
			x := newTrial(t, instance)
			s := x.newScope(instance)
			s.Host.Agent, s.Host.Facts = `C:\k\wicd\wicd.exe`, &plan.Facts{System: host.SystemInfo{BootID: test.boot}}

			o := s.AwaitRestart()
			if (o != nil) != test.waits {
				t.Fatalf("in the way is %+v", o)
			}
			if test.waits && (o.Outcome != result.Wait || o.RequeueAfter <= 0 || o.RequeueAfter > maxRebootPollInterval ||
				o.Reason != v1alpha1.ReasonRebooting) {
				t.Errorf("it waits by %+v", o)
			}
			if test.waits && (s.Host.Agent != "" || s.Host.Facts != nil) {
				t.Error("what the host has told before it goes down is believed after it has come up")
			}
			if over := instance.Status.RestartStartedAt == nil; test.reboots && over == test.waits {
				t.Errorf("the wait is over: %t", over)
			}
		})
	}
}
