package agent_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// withProxyService returns a host that had a service kube-proxy before the operator.
func withProxyService(t *testing.T, change func(*host.ServiceConfig)) *rig {
	t.Helper()
	config := host.ServiceConfig{
		Name: "kube-proxy", CommandLine: `C:\Windows\System32\svchost.exe -k proxy`, StartType: host.StartAutomatic, ResetPeriod: time.Hour,
	}
	change(&config)
	r := newRig(t, func(o *fake.Options) { o.Services = []host.ServiceConfig{config} })
	r.must(r.Boot(r.ctx))
	r.must(r.Host().Services.Start(r.ctx, config.Name)) // Windows starts a delayed service later
	r.before = r.Snapshot()
	return r
}

//
func TestRemove_RestoresPreexistingServiceCompletely(t *testing.T) {
	t.Parallel()
	restart := host.RecoveryAction{Kind: host.RecoveryRestart, Delay: time.Minute}
	for name, change := range map[string]func(*host.ServiceConfig){
		"restarts after crashes, but not after errors": func(c *host.ServiceConfig) {
			c.SetRecovery(host.Recovery{Actions: []host.RecoveryAction{restart}})
		},
		"a command, a reboot with its message, and no action": func(c *host.ServiceConfig) {
			c.SetRecovery(host.Recovery{Actions: []host.RecoveryAction{
				{Kind: host.RecoveryCommand, Delay: time.Second}, {Kind: host.RecoveryReboot, Delay: time.Hour}, {Kind: host.RecoveryNone}},
				Command: `C:\alert.exe "kube-proxy"`, RebootMessage: "kube-proxy crashed", AfterErrors: true})
		},
		"its own restart": func(c *host.ServiceConfig) {
			c.SetRecovery(host.Recovery{Actions: []host.RecoveryAction{{Kind: host.RecoveryOwnRestart}}})
		},
		"a command and a message that no action uses": func(c *host.ServiceConfig) {
			c.SetRecovery(host.Recovery{Actions: []host.RecoveryAction{restart}, Command: "alert.exe", RebootMessage: "again", AfterErrors: true})
		},
		"the flag, without actions": func(c *host.ServiceConfig) { c.SetRecovery(host.Recovery{AfterErrors: true}) },
		"a delayed start":           func(c *host.ServiceConfig) { c.DelayedStart = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := withProxyService(t, change)
			r.configureHost()
			r.awaitServices()
			own, _ := r.Service("kube-proxy")
			if own.Recovery != nil || own.DelayedStart || len(own.RestartDelays) == 0 {
				t.Errorf("the node's service has %+v", own.ServiceConfig)
			}
			r.removeNode()
			compareSnapshots(t, r.before, r.Snapshot())
		})
	}
}

// An earlier version of the agent recorded delays only; any action except a restart was -1. R-064
func TestRemove_RestoresServiceFromOlderRecord(t *testing.T) {
	t.Parallel()
	r := withProxyService(t, func(c *host.ServiceConfig) {
		c.DelayedStart = true
		c.SetRecovery(host.Recovery{Actions: []host.RecoveryAction{
			{Kind: host.RecoveryRestart, Delay: time.Minute}, {Kind: host.RecoveryReboot}}, RebootMessage: "again"})
	})
	r.configureHost()
	r.awaitServices()
	data, err := r.Drive().ReadFile(nodespec.LedgerPath)
	r.must(err)
	r.must(r.Drive().WriteFile(nodespec.LedgerPath, alterDocument(t, data, func(ledger map[string]any) {
		record := ledger["services"].(map[string]any)["kube-proxy"].(map[string]any)
		delays, _ := json.Marshal(record["restartDelays"])
		if _, exists := record["recovery"]; !exists || string(delays) != "[60000000000,-1]" {
			t.Errorf("the record is %v", record)
		}
		delete(record, "recovery")
		delete(record, "delayedStart")
	})))
	r.removeNode()
	service, _ := r.Service("kube-proxy")
	want := host.Recovery{Actions: []host.RecoveryAction{{Kind: host.RecoveryRestart, Delay: time.Minute}, {Kind: host.RecoveryNone}},
		AfterErrors: true}
	if diff := cmp.Diff(want, service.FullRecovery()); diff != "" || service.DelayedStart || service.State != host.ServiceRunning {
		t.Errorf("%s, delayed: %t; recovery (-want +got):\n%s", service.State, service.DelayedStart, diff)
	}
}

func TestApply_RepairsServiceRecovery(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	want, _ := r.Service("kube-proxy")
	for name, change := range map[string]func(*host.ServiceConfig){
		"a command is added": func(c *host.ServiceConfig) {
			recovery := c.FullRecovery()
			recovery.Command = "alert.exe"
			c.SetRecovery(recovery)
		},
		"errors count no more": func(c *host.ServiceConfig) {
			recovery := c.FullRecovery()
			recovery.AfterErrors = false
			c.SetRecovery(recovery)
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := want.ServiceConfig
			change(&changed)
			r.must(r.Host().Services.Configure(r.ctx, changed))
			steps := r.configureHost()
			if !slices.ContainsFunc(steps, func(step string) bool { return strings.HasPrefix(step, "ConfigureService") }) {
				t.Errorf("steps: %q", steps)
			}
			got, _ := r.Service("kube-proxy")
			if diff := cmp.Diff(want.ServiceConfig, got.ServiceConfig); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}
