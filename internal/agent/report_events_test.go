package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/report"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// eventsByID returns the entries of the event log with the ID.
func (r *rig) eventsByID(id uint32) []host.Event {
	var found []host.Event
	for _, event := range r.Events() {
		if event.ID == id && event.Source == nodespec.ServiceAgent {
			found = append(found, event)
		}
	}
	return found
}

func TestEvents(t *testing.T) {
	t.Parallel()
	t.Run("a host with nothing to repair has none", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		for range 3 {
			r.advanceTime(timeouts.DriftCheckInterval)
		}
		if events := r.Events(); len(events) != 0 {
			t.Errorf("got %+v", events)
		}
	})
	t.Run("all that was repaired at once is one event", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		r.must(r.Host().Services.Stop(r.ctx, "containerd"))
		r.advanceTime(timeouts.DriftPollInterval)
		events := r.eventsByID(report.EventRepaired)
		if len(events) != 1 {
			t.Fatalf("got %+v", events)
		}
		for _, name := range []string{"containerd", "kubelet", "hybrid-overlay-node", "kube-proxy"} {
			if !strings.Contains(events[0].Message, "StartService "+name+", because service "+name+" does not run") {
				t.Errorf("nothing of %s in %q", name, events[0].Message)
			}
		}
	})
	t.Run("the same again and again is one event an hour", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t, func(r *rig) { r.validity = 24 * time.Hour }) // longer than the hour of the test
		for range 5 {
			r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
			r.advanceTime(timeouts.DriftCheckInterval)
		}
		if n := len(r.eventsByID(report.EventRepaired)); n != 1 {
			t.Errorf("%d events within an hour", n)
		}
		if n := strings.Count(r.readLog(), "StartService kube-proxy"); n != 5 {
			t.Errorf("the log has %d of 5", n)
		}
		r.advanceTime(timeouts.EventRepeatInterval)
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.advanceTime(timeouts.DriftCheckInterval)
		if n := len(r.eventsByID(report.EventRepaired)); n != 2 {
			t.Errorf("%d events after an hour", n)
		}
	})
	t.Run("a service that does not start is reported once while it lasts, and once when it is over", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		restore := r.FailServiceStart("kube-proxy", 7)
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		for range 5 {
			r.advanceTime(timeouts.DriftCheckInterval)
		}
		events := r.eventsByID(report.EventServiceFailed)
		if len(events) != 1 || events[0].Level != host.EventError || !strings.Contains(events[0].Message, "exit code is 7") {
			t.Errorf("got %+v", events)
		}
		if n := len(r.eventsByID(report.EventRecovered)); n != 0 {
			t.Errorf("%d events say that it is over", n)
		}
		restore()
		for range 2 {
			r.advanceTime(timeouts.DriftCheckInterval)
		}
		if n := len(r.eventsByID(report.EventRecovered)); n != 1 {
			t.Errorf("%d events say that it is over", n)
		}
	})
	t.Run("a service that does not stop is reported once", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		r.OnOperation(func(o fake.Operation) error {
			if o.Process.Service == nodespec.ServiceAgent && o.Method == "Stop" {
				return errKilled
			}
			return nil
		})
		r.must(r.Drive().WriteFile(`C:\k\kube-proxy.conf`, []byte("other")))
		for range 3 {
			r.advanceTime(timeouts.DriftCheckInterval)
		}
		if events := r.eventsByID(report.EventServiceFailed); len(events) != 1 || !strings.Contains(events[0].Message, "does not stop") {
			t.Errorf("got %+v", events)
		}
	})
	t.Run("what cannot be repaired is reported once", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		r.OnOperation(func(o fake.Operation) error {
			if o.Process.Service == nodespec.ServiceAgent && o.Interface == "Firewall" && o.Method == "SetRule" {
				return errKilled
			}
			return nil
		})
		r.must(r.Host().Firewall.DeleteRule(r.ctx, "ContainerLogsPort"))
		for range 3 {
			r.advanceTime(timeouts.DriftCheckInterval)
		}
		if events := r.eventsByID(report.EventNotRepaired); len(events) != 1 || !strings.Contains(events[0].Message, "SetFirewallRule ContainerLogsPort") {
			t.Errorf("got %+v", events)
		}
	})
	t.Run("what is left to the operator is a warning, once, also beside a failure", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		r.must(r.Drive().RemoveAll(versions{}.releaseOf("cni").Directory))
		for range 3 {
			r.advanceTime(timeouts.DriftCheckInterval)
		}
		if events := r.eventsByID(report.EventLeft); len(events) != 1 || events[0].Level != host.EventWarning {
			t.Errorf("got %+v", events)
		}
		r.FailServiceStart("kube-proxy", 7)
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		for range 3 {
			r.advanceTime(timeouts.DriftCheckInterval)
		}
		events := r.eventsByID(report.EventServiceFailed)
		if len(events) != 1 || !strings.Contains(events[0].Message, "left to the operator") {
			t.Errorf("got %+v", events)
		}
	})
	t.Run("trouble that comes and goes is reported in its last state", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t, func(r *rig) { r.validity = 24 * time.Hour }) // longer than the hour of the test
		for range 3 {
			restore := r.FailServiceStart("kube-proxy", 7)
			r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
			r.advanceTime(timeouts.DriftCheckInterval)
			restore()
			r.advanceTime(timeouts.DriftCheckInterval)
		}
		r.FailServiceStart("kube-proxy", 7)
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.advanceTime(timeouts.DriftCheckInterval)
		if n := len(r.eventsByID(report.EventServiceFailed)); n != 1 {
			t.Errorf("%d events within an hour", n)
		}
		r.advanceTime(timeouts.EventRepeatInterval)
		events := r.Events()
		if last := events[len(events)-1]; last.ID != report.EventServiceFailed || len(events) > 4 {
			t.Errorf("got %+v", events)
		}
	})
	t.Run("facts that cannot be had for a moment are nothing to tell, and trouble when that lasts", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		failures := 1
		r.OnOperation(func(o fake.Operation) error {
			if o.Process.Service == nodespec.ServiceAgent && o.Interface == "Environment" && failures > 0 {
				failures--
				return errKilled
			}
			return nil
		})
		r.advanceTime(timeouts.DriftCheckInterval)
		r.advanceTime(timeouts.DriftPollInterval)
		if events := r.Events(); len(events) != 0 || failures != 0 {
			t.Errorf("got %+v", events)
		}
		failures = 1000
		for range 4 {
			r.advanceTime(timeouts.DriftCheckInterval)
		}
		if events := r.eventsByID(report.EventNotRepaired); len(events) != 1 || !strings.Contains(events[0].Message, "environment") {
			t.Errorf("got %+v", r.Events())
		}
	})
	t.Run("an event log that takes nothing keeps nobody from repairing", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		r.OnOperation(func(o fake.Operation) error {
			if o.Interface == "EventLog" && o.Method == "Report" {
				return errKilled
			}
			return nil
		})
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.advanceTime(timeouts.DriftPollInterval)
		if service, _ := r.Service("kube-proxy"); service.State != host.ServiceRunning {
			t.Error("kube-proxy does not run")
		}
		if !strings.Contains(r.readLog(), "the event log does not accept events") {
			t.Errorf("the log does not say so: %s", r.readLog())
		}
	})
}
