package agent_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// The Host Networking Service may read the setting for static addresses only at its start. If the service
// started before the value was written, creating the pod network removes the host's address.
func TestStaticAddress_KeptIfHNSReadsRegistryOnce(t *testing.T) {
	t.Parallel()
	late := func(o *fake.Options) {
		o.System, o.StaticAddress, o.HNSSettingsReadAtStart = fake.WindowsServer2019(), true, true
	}
	afterHNS := func(o *fake.Options) { o.Services[0].Dependencies = []string{"hns"} }
	hosts := map[string]func(*testing.T) *rig{
		"alone":  func(t *testing.T) *rig { t.Helper(); return newRig(t, late).start() },
		"Docker": func(t *testing.T) *rig { t.Helper(); return withDocker(t, late, afterHNS) },
	}
	for name, c := range map[string]struct{ host, killed string }{
		"the service is restarted":                                         {"alone", ""},
		"an agent that is killed before it stops the service":              {"alone", "Services.Stop hns"},
		"an agent that is killed before it writes the value":               {"alone", "Registry.SetNumber"},
		"an agent that is killed before it starts the service":             {"alone", "Services.Start hns"},
		"the host is restarted where Docker uses the service":              {"Docker", ""},
		"the same, and the agent is killed before it writes the value":     {"Docker", "Registry.SetNumber"},
		"the same, and the agent is killed before the restart of the host": {"Docker", "Power.Reboot"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := hosts[c.host](t)
			r.killOnce(c.killed)
			spec, boots := newSpec(nil), r.Journal().Count(fake.KindReboot)
			if c.host == "Docker" {
				spec.HostName = "" // no other reason to restart the host
			}
			steps := r.configureTo(spec, func() bool { return false })
			r.checkReachable()
			stopped, restarted := slices.Contains(steps, "StopService hns"), r.Journal().Count(fake.KindReboot)-boots
			if stopped != (c.host == "alone") || restarted != 1 { // a host without Docker restarts for its name
				t.Errorf("the service was stopped: %t, the host was restarted %d times; steps %v", stopped, restarted, steps)
			}
			spec.Network.PodSubnet = podSubnet
			if p := r.runPlan(spec); len(p.Steps)+len(p.Needs) > 0 {
				t.Errorf("needs %v, steps\n%s", p.Needs, formatSteps(p))
			}
		})
	}
}

// killOnce kills the command before the first operation that contains the text; an empty text disables the
// kill.
func (r *rig) killOnce(text string) {
	var done atomic.Bool
	done.Store(text == "")
	r.Cleanup(func() {
		if !done.Load() {
			r.Error("nothing was killed: the test shows nothing")
		}
	})
	r.OnOperation(func(o fake.Operation) error {
		if o.Process.Service != "" || !strings.Contains(o.String(), text) || !done.CompareAndSwap(false, true) {
			return nil
		}
		o.Process.Kill()
		return errKilled
	})
}
