package fake

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestNetworks(t *testing.T) {
	network := host.HNSNetwork{Name: "Overlay", Type: "Overlay", Subnet: "10.132.1.0/29"}
	t.Run("there are none before the feature Containers is in force", func(t *testing.T) {
		r := bootMachine(t, nil)
		r.requireError(r.CreateNetwork(network), errNoHNS)
		_, err := r.Networks.Networks(r.ctx)
		r.requireError(err, errNoHNS)
	})
	t.Run("endpoints get free addresses until there are none, and go with their network", func(t *testing.T) {
		r := bootMachine(t, nil, func(o *Options) { o.Features = map[string]host.FeatureState{"Containers": host.FeatureEnabled} })
		r.requireNoError(r.CreateNetwork(network))
		r.requireError(r.CreateNetwork(network), host.ErrExist)
		var got []string
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			e, err := r.Networks.CreateEndpoint(r.ctx, "overlay", name, "")
			r.requireNoError(err)
			got = append(got, e.Address)
		}
		want := []string{"10.132.1.2", "10.132.1.3", "10.132.1.4", "10.132.1.5", "10.132.1.6"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("addresses (-want +got):\n%s", diff)
		}
		if _, err := r.Networks.CreateEndpoint(r.ctx, "Overlay", "f", ""); err == nil {
			t.Error("a subnet without a free address gave one")
		}
		r.requireNoError(r.Networks.DeleteEndpoint(r.ctx, "b"))
		e, err := r.Networks.CreateEndpoint(r.ctx, "Overlay", "f", "")
		r.requireNoError(err)
		if e.Address != "10.132.1.3" {
			t.Errorf("address %s", e.Address)
		}
		_, err = r.Networks.CreateEndpoint(r.ctx, "Overlay", "a", "")
		r.requireError(err, host.ErrExist)
		r.requireNoError(r.Networks.DeleteNetwork(r.ctx, "Overlay"))
		left, err := r.Networks.Endpoints(r.ctx)
		r.requireNoError(err)
		if len(left) != 0 {
			t.Errorf("endpoints left: %v", left)
		}
		r.requireError(r.Networks.DeleteNetwork(r.ctx, "Overlay"), host.ErrNotExist)
		r.requireError(r.Networks.DeleteEndpoint(r.ctx, "a"), host.ErrNotExist)
	})
}

// TCP 10250 must be open.
func TestFirewallGuardsListeners(t *testing.T) {
	r := bootMachine(t, nil, func(o *Options) {
		o.Listen = func(ctx context.Context, _ int) (net.Listener, error) {
			return (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		}
	})
	p := r.startIdleProcess(nil)
	listener, err := p.Listen(10250)
	r.requireNoError(err)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("x"))
			_ = c.Close()
		}
	}()
	query := func() error {
		c, err := (&net.Dialer{}).DialContext(r.ctx, "tcp", listener.Addr().String())
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		_, err = c.Read(make([]byte, 1))
		return err
	}
	if query() == nil {
		t.Error("the closed port answers")
	}
	rule := host.FirewallRule{Name: "kubelet", DisplayName: "kubelet", Protocol: "TCP", LocalPort: 10250,
		Enabled: true, Allow: true}
	r.requireNoError(r.Firewall.SetRule(r.ctx, rule))
	r.requireNoError(query())
	rule.Name, rule.Allow = "block", false
	r.requireNoError(r.Firewall.SetRule(r.ctx, rule))
	if query() == nil {
		t.Error("the blocked port answers")
	}
	p.Kill()
	if _, err := p.Listen(10250); !errors.Is(err, ErrProcessEnded) {
		t.Errorf("a dead process listens: %v", err)
	}
	if _, err := listener.Accept(); err == nil {
		t.Error("the listener of a dead process accepts")
	}
}

func TestFaultInjection(t *testing.T) {
	t.Run("an operation fails with the injected error and does nothing", func(t *testing.T) {
		r := bootMachine(t, nil)
		failure := errors.New("broken")
		var seen []string
		remove := r.OnOperation(func(o Operation) error {
			seen = append(seen, o.String())
			if o.Method == "MakeDirectory" {
				return failure
			}
			return nil
		})
		r.requireError(r.Tree.MakeDirectory(r.ctx, `C:\k`, ""), failure)
		_, err := r.Files.Stat(r.ctx, `C:\k`)
		r.requireError(err, host.ErrNotExist)
		if diff := cmp.Diff([]string{`Tree.MakeDirectory C:\k`, `Files.Stat C:\k`}, seen); diff != "" {
			t.Errorf("operations (-want +got):\n%s", diff)
		}
		remove()
		r.requireNoError(r.Tree.MakeDirectory(r.ctx, `C:\k`, ""))
	})
	t.Run("a hook may kill the process or cut the power before an operation", func(t *testing.T) {
		r := bootMachine(t, nil)
		p := r.startIdleProcess(nil)
		remove := r.OnOperation(func(o Operation) error { o.Process.Kill(); return nil })
		r.requireError(p.Host.Tree.MakeDirectory(r.ctx, `C:\k`, ""), ErrProcessEnded)
		remove()
		r.OnOperation(func(Operation) error { r.PowerOff(); return nil })
		r.requireError(r.Tree.MakeDirectory(r.ctx, `C:\k`, ""), ErrPoweredOff)
	})
}

func TestJournal(t *testing.T) {
	r := bootMachine(t, programs{"idle": runIdle})
	r.installService("s", "idle")
	r.requireNoError(r.Services.Start(r.ctx, "s"))
	r.write(`C:\file`, "12345")
	r.Journal().Append(KindConnection, "from a test", 0)
	r.requireNoError(r.Power.Reboot(r.ctx, "because"))
	for kind, want := range map[Kind]int{KindWrite: 2, KindConnection: 1, KindReboot: 1, KindSFTP: 0} {
		if got := r.Journal().Count(kind); got != want {
			t.Errorf("%s: %d entries, want %d", kind, got, want)
		}
	}
	if got := r.Journal().Bytes(KindWrite); got != int64(len("idle")+len("12345")) {
		t.Errorf("%d bytes", got)
	}
	reboots := r.Journal().Entries(func(e Entry) bool { return e.Kind == KindReboot })
	if len(reboots) != 1 || reboots[0].Detail != "because" || !reboots[0].Time.Equal(epoch) {
		t.Errorf("%+v", reboots)
	}
}

func TestSnapshot(t *testing.T) {
	t.Run("each change shows, and taking it back makes the machine equal again", func(t *testing.T) {
		r := bootMachine(t, programs{"idle": runIdle}, func(o *Options) {
			o.Features = map[string]host.FeatureState{"Containers": host.FeatureEnabled}
		})
		before := r.Snapshot()
		rule := host.FirewallRule{Name: "x", DisplayName: "x", Protocol: "TCP", LocalPort: 1}
		for _, change := range []struct {
			name     string
			do, undo func() error
		}{
			{"file", func() error {
				return r.Drive().WriteFile(`C:\x`, []byte("x"))
			}, func() error { return r.Drive().Remove(`C:\x`) }},
			{"folder", func() error { return r.Drive().Mkdir(`C:\x`) }, func() error { return r.Drive().Remove(`C:\x`) }},
			{"link", func() error {
				return r.Drive().Symlink(`C:\y`, `C:\x`)
			}, func() error { return r.Drive().Remove(`C:\x`) }},
			{
				"access", func() error { return r.Tree.MakeDirectory(r.ctx, `C:\Users`, host.AccessAdministrators) },
				func() error { return r.Tree.MakeDirectory(r.ctx, `C:\Users`, host.AccessInherited) },
			},
			{"service state", func() error {
				return r.Services.Start(r.ctx, "W32Time")
			}, func() error { return r.Services.Stop(r.ctx, "W32Time") }},
			{
				"feature", func() error { return r.Features.Enable(r.ctx, "SMB1Protocol") },
				func() error { return r.Features.Disable(r.ctx, "SMB1Protocol") },
			},
			{"host name", func() error { return r.System.SetHostName(r.ctx, "x") }, func() error {
				return r.System.SetHostName(r.ctx, "win-a")
			}},
			{
				"variable", func() error { return r.Environment.Set(r.ctx, "x", "x") },
				func() error { return r.Environment.Unset(r.ctx, "x") },
			},
			{"rule", func() error { return r.Firewall.SetRule(r.ctx, rule) }, func() error {
				return r.Firewall.DeleteRule(r.ctx, "x")
			}},
			{
				"network", func() error { return r.CreateNetwork(host.HNSNetwork{Name: "x", Subnet: "10.0.0.0/24"}) },
				func() error { return r.Networks.DeleteNetwork(r.ctx, "x") },
			},
		} {
			r.requireNoError(change.do())
			if cmp.Equal(before, r.Snapshot()) {
				t.Errorf("%s: the change does not show", change.name)
			}
			r.requireNoError(change.undo())
			if diff := cmp.Diff(before, r.Snapshot()); diff != "" {
				t.Errorf("%s: taking it back leaves (-before +after):\n%s", change.name, diff)
			}
		}
	})
}

func TestFeature_DurationDelaysSwitch(t *testing.T) {
	withSlowFeatures := func(o *Options) { o.FeatureDuration = time.Minute }
	state := func(r *rig) host.FeatureState {
		state, err := r.Features.State(r.ctx, "Containers")
		r.requireNoError(err)
		return state
	}
	t.Run("it is switched when that is over", func(t *testing.T) {
		r := bootMachine(t, nil, withSlowFeatures)
		switched := make(chan error, 1)
		go func() { switched <- r.Features.Enable(r.ctx, "Containers") }()
		r.awaitCondition(r.clock.HasWaiters)
		if got := state(r); got != host.FeatureDisabled {
			t.Errorf("at first it is %s", got)
		}
		r.clock.Step(time.Minute)
		r.requireNoError(<-switched)
		if got := state(r); got != host.FeatureEnablePending {
			t.Errorf("in the end it is %s", got)
		}
		r.requireNoError(r.Features.Enable(r.ctx, "Containers")) // takes no time: nothing changes
	})
	t.Run("the end of who has asked for it leaves it as it was", func(t *testing.T) {
		r := bootMachine(t, nil, withSlowFeatures)
		p := r.startIdleProcess(nil)
		switched := make(chan error, 1)
		go func() { switched <- p.Host.Features.Enable(r.ctx, "Containers") }()
		r.awaitCondition(r.clock.HasWaiters)
		r.requireNoError(r.Processes.Kill(r.ctx, p.PID))
		r.requireError(<-switched, ErrProcessEnded)
		if got := state(r); got != host.FeatureDisabled {
			t.Errorf("it is %s", got)
		}
	})
}
