package agent_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agent/report"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/plan"
)

const registrationStep = "DisableDNSRegistration VIPEndpoint"

// checkRegistration checks whether the host registers foreign addresses in DNS.
func (r *rig) checkRegistration(want bool) {
	r.Helper()
	info, err := r.Host().System.Info(r.ctx)
	r.must(err)
	if got := !slices.Equal(r.DNSAddresses(), info.Addresses); got != want {
		r.Errorf("the host registers %v in DNS, its own addresses are %v", r.DNSAddresses(), info.Addresses)
	}
}

// registrationName returns the registry value of the adapter of kube-proxy's endpoint.
func (r *rig) registrationName() host.RegistryName {
	r.Helper()
	endpoints, err := r.Host().Networks.Endpoints(r.ctx)
	r.must(err)
	at := slices.IndexFunc(endpoints, func(e host.HNSEndpoint) bool { return e.Name == host.SourceVIPEndpoint })
	if at < 0 || endpoints[at].Adapter == "" {
		r.Fatalf("no adapter of %s: %+v", host.SourceVIPEndpoint, endpoints)
	}
	return plan.RegistrationName(endpoints[at].Adapter)
}

func TestDNSRegistration_DisabledForKubeProxyAdapter(t *testing.T) {
	t.Parallel()
	t.Run("from the first configuration on, and after a boot", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).start()
		if steps := r.configureHost(); slices.Contains(steps, registrationStep) {
			t.Errorf("it registers until the next plan: %q", steps)
		}
		r.awaitServices()
		r.checkRegistration(false)
		first := r.registrationName()
		r.rebootHost()
		r.advanceUntil("kube-proxy runs", func() bool { return r.isRunning("kube-proxy") })
		r.checkRegistration(false)
		if r.registrationName() == first {
			t.Error("the test shows nothing: the adapter is the same")
		}
		if events := r.eventsByID(report.EventRepaired); len(events) != 0 {
			t.Errorf("a boot counts as a repair: %+v", events)
		}
	})
	t.Run("again, on a node that an earlier release configured, without a stopped service", func(t *testing.T) {
		t.Parallel()
		for name, drift := range map[string]func(*rig, host.RegistryName) error{
			"no value":      func(r *rig, at host.RegistryName) error { return r.Host().Registry.Delete(r.ctx, at) },
			"another value": func(r *rig, at host.RegistryName) error { return r.Host().Registry.SetNumber(r.ctx, at, 1) },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := newNodeRig(t)
				r.must(drift(r, r.registrationName()))
				r.checkRegistration(true)
				p := r.runPlan(r.fullSpec())
				if len(p.Steps) != 1 || p.Steps[0].Name != registrationStep || p.Steps[0].DisruptsPods {
					t.Errorf("the plan is %q: %+v", formatSteps(p), p.Steps)
				}
				stops := r.serviceCalls("Stop")
				r.advanceTime(timeouts.DriftCheckInterval)
				r.checkRegistration(false)
				if events := r.eventsByID(report.EventRepaired); len(events) != 1 || stops("") != 0 {
					t.Errorf("%d stops, events %+v", stops(""), events)
				}
			})
		}
	})
}

// A registry that refuses the value blocks neither the configuration nor the removal of a host.
func TestDNSRegistration_RefusedRegistryWriteBlocksNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	queries := 0
	restore := r.OnOperation(func(o fake.Operation) error {
		if o.Interface == "Registry" && o.Method == "SetNumber" && strings.HasSuffix(o.Target, "RegistrationEnabled") {
			queries++
			return errors.New("access is denied")
		}
		return nil
	})
	if steps := r.configureHost(); !slices.Contains(steps, registrationStep) {
		t.Errorf("steps: %q", steps)
	}
	r.awaitServices()
	r.checkRegistration(true)
	if p := r.runPlan(r.fullSpec()); len(p.Steps)+len(p.Needs) != 0 {
		t.Errorf("it is tried again and again: %s", formatSteps(p))
	}
	before := queries
	for range 3 {
		r.advanceTime(timeouts.DriftCheckInterval)
	}
	if queries != before || len(r.eventsByID(report.EventRepaired)) != 0 {
		t.Errorf("the service tried %d times, events %+v", queries-before, r.Events())
	}
	restore()
	r.mustApply(r.fullSpec())
	r.checkRegistration(false)
	r.awaitServices()
	r.removeNode()
	compareSnapshots(t, r.before, r.Snapshot())
}
