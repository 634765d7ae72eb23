package fake

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/host"
)

const metadataRoute = "169.254.169.254/32"

func enableContainers(o *Options) {
	o.Features = map[string]host.FeatureState{"Containers": host.FeatureEnabled}
}

func TestRoutes(t *testing.T) {
	overlay := func(name string) host.HNSNetwork {
		return host.HNSNetwork{Name: name, Type: "Overlay", Subnet: "10.132.0.0/24"}
	}
	image := func(o *Options) { enableContainers(o); o.Routes = []string{metadataRoute} }
	t.Run("the routes of a cloud's image are there at the first boot, and lost with the second", func(t *testing.T) {
		r := bootMachine(t, nil, image)
		if got := r.AddedRoutes(); !slices.Equal(got, []string{metadataRoute}) {
			t.Fatalf("routes %q", got)
		}
		r.requireNoError(r.Power.Reboot(r.ctx, "test"))
		r.awaitCondition(r.IsRunning)
		if got := r.AddedRoutes(); len(got) != 0 {
			t.Errorf("routes %q", got)
		}
	})
	t.Run("the first overlay network and the last one's end take added routes with them", func(t *testing.T) {
		r := bootMachine(t, nil, image)
		r.requireNoError(r.CreateNetwork(host.HNSNetwork{Name: "nat", Type: "NAT", Subnet: "10.1.0.0/24"}))
		if got := r.AddedRoutes(); len(got) != 1 {
			t.Errorf("after a NAT network: %q", got)
		}
		r.requireNoError(r.CreateNetwork(overlay("a")))
		if got := r.AddedRoutes(); len(got) != 0 {
			t.Errorf("after the overlay network: %q", got)
		}
		r.requireNoError(r.Routes.Add(r.ctx, metadataRoute))
		r.requireNoError(r.CreateNetwork(overlay("b")))
		r.requireNoError(r.Networks.DeleteNetwork(r.ctx, "a"))
		if got := r.AddedRoutes(); len(got) != 1 {
			t.Errorf("with another overlay network on the adapter: %q", got)
		}
		r.requireNoError(r.Networks.DeleteNetwork(r.ctx, "b"))
		if got := r.AddedRoutes(); len(got) != 0 {
			t.Errorf("without an overlay network: %q", got)
		}
		lost := r.Journal().Entries(func(e Entry) bool { return e.Kind == KindRoute && strings.HasPrefix(e.Detail, "lose ") })
		if len(lost) != 2 {
			t.Errorf("the journal tells of %+v", lost)
		}
	})
	t.Run("the snapshot has added routes and trusted roots", func(t *testing.T) {
		r := bootMachine(t, nil)
		before := r.Snapshot()
		r.requireNoError(r.Routes.Add(r.ctx, metadataRoute))
		if after := r.Snapshot(); cmp.Equal(before, after) || !slices.Equal(after.Routes, []string{metadataRoute}) {
			t.Errorf("routes %q", after.Routes)
		}
		r.requireNoError(r.Routes.Delete(r.ctx, metadataRoute))
		if diff := cmp.Diff(before, r.Snapshot()); diff != "" {
			t.Errorf("snapshot (-before +after):\n%s", diff)
		}
		if len(before.Roots) != 1 {
			t.Errorf("trusted roots of a fresh machine: %q", before.Roots)
		}
	})
	t.Run("without a default route nothing is listed or added, and what there was is lost", func(t *testing.T) {
		r := bootMachine(t, nil)
		r.requireNoError(r.Routes.Add(r.ctx, metadataRoute))
		restore := r.LoseDefaultRoute()
		list, err := r.Routes.ViaDefault(r.ctx)
		r.requireNoError(err)
		if len(list) != 0 {
			t.Errorf("routes %q", list)
		}
		r.requireError(r.Routes.Add(r.ctx, metadataRoute), host.ErrNotExist)
		r.requireNoError(r.Routes.Delete(r.ctx, metadataRoute))
		restore()
		r.requireNoError(r.Routes.Add(r.ctx, metadataRoute))
		r.LoseRoutes()
		if got := r.AddedRoutes(); len(got) != 0 {
			t.Errorf("routes %q", got)
		}
	})
}

func TestManualServicesAtBoot(t *testing.T) {
	r := bootMachine(t, programs{"idle": runIdle})
	automatic := func(on ...string) func(*host.ServiceConfig) {
		return func(c *host.ServiceConfig) { c.StartType, c.Dependencies = host.StartAutomatic, on }
	}
	r.installService("needed", "idle")
	r.installService("dependent", "idle", func(c *host.ServiceConfig) { c.Dependencies = []string{"agent"} })
	r.installService("agent", "idle", automatic("needed"))
	r.requireNoError(r.Services.Start(r.ctx, "dependent"))
	r.requireNoError(r.Power.Reboot(r.ctx, "test"))
	r.awaitCondition(r.IsRunning)
	got := []host.ServiceState{r.serviceState("agent"), r.serviceState("needed"), r.serviceState("dependent")}
	if want := []host.ServiceState{host.ServiceRunning, host.ServiceRunning, host.ServiceStopped}; !slices.Equal(got,
		want) {
		t.Errorf("an automatic service, a manual one that it depends on, a manual one that depends on it: %v, want %v", got,
			want)
	}
}

func TestLogs(t *testing.T) {
	t.Run("a log that its program has open is rotated but neither replaced nor removed", func(t *testing.T) {
		r := bootMachine(t, nil)
		p := r.startIdleProcess(nil)
		r.requireNoError(p.AppendLog(`C:\a.log`, "one\n"))
		r.requireError(r.Files.Remove(r.ctx, `C:\a.log`), host.ErrInUse)
		r.requireError(r.Tree.Rename(r.ctx, `C:\a.log`, `C:\b.log`), host.ErrInUse)
		r.requireNoError(r.Logs.Rotate(r.ctx, `C:\a.log`, `C:\a-1.log`))
		r.requireNoError(p.AppendLog(`C:\a.log`, "two\n"))
		if r.read(`C:\a-1.log`) != "one\n" || r.read(`C:\a.log`) != "two\n" {
			t.Errorf("copy %q, log %q", r.read(`C:\a-1.log`), r.read(`C:\a.log`))
		}
		p.Kill()
		r.requireNoError(r.Files.Remove(r.ctx, `C:\a.log`))
	})
	t.Run("a log that another program keeps to itself is in use", func(t *testing.T) {
		r := bootMachine(t, nil)
		r.write(`C:\a.log`, "one\n")
		release, err := r.HoldFile(`C:\a.log`)
		r.requireNoError(err)
		r.requireError(r.Logs.Rotate(r.ctx, `C:\a.log`, `C:\a-1.log`), host.ErrInUse)
		release()
		r.requireNoError(r.Logs.Rotate(r.ctx, `C:\a.log`, `C:\a-1.log`))
	})
	t.Run("without room for the copy the log stays as it is", func(t *testing.T) {
		r := bootMachine(t, nil)
		r.write(`C:\a.log`, "one\n")
		restore := r.FillDisk(3)
		r.requireError(r.Logs.Rotate(r.ctx, `C:\a.log`, `C:\a-1.log`), host.ErrDiskFull)
		if got := r.read(`C:\a.log`); got != "one\n" {
			t.Errorf("log %q", got)
		}
		if _, err := r.Drive().Stat(`C:\a-1.log`); !errors.Is(err, host.ErrNotExist) {
			t.Errorf("copy: %v", err)
		}
		restore()
	})
	t.Run("a log that cannot be emptied leaves no copy, and its program goes on", func(t *testing.T) {
		r := bootMachine(t, nil)
		p := r.startIdleProcess(nil)
		r.requireNoError(p.AppendLog(`C:\a.log`, "one\n"))
		unmap, err := r.MapFile(`C:\a.log`)
		r.requireNoError(err)
		r.requireError(r.Logs.Rotate(r.ctx, `C:\a.log`, `C:\a-1.log`), host.ErrInUse)
		r.requireNoError(p.AppendLog(`C:\a.log`, "two\n"))
		if got := r.read(`C:\a.log`); got != "one\ntwo\n" {
			t.Errorf("log %q", got)
		}
		if _, err := r.Drive().Stat(`C:\a-1.log`); !errors.Is(err, host.ErrNotExist) {
			t.Errorf("copy: %v", err)
		}
		unmap()
		r.requireNoError(r.Logs.Rotate(r.ctx, `C:\a.log`, `C:\a-1.log`))
	})
}

func TestRoots(t *testing.T) {
	der := newCACertificate(t)
	trusts := func(r *rig) bool { return slices.Contains(r.TrustedRoots(), fingerprintOf(der)) }
	t.Run("a certificate that a policy brings is trusted and can only be removed there", func(t *testing.T) {
		r := bootMachine(t, nil)
		withdraw := r.TrustByPolicy(der)
		for range 2 {
			r.requireError(r.Roots.Remove(r.ctx, fingerprintOf(der)), host.ErrRefused)
			if !trusts(r) {
				t.Error("it is not trusted")
			}
		}
		withdraw()
		r.requireNoError(r.Roots.Remove(r.ctx, fingerprintOf(der)))
		if trusts(r) {
			t.Error("it is still trusted")
		}
	})
	t.Run("one that was added too is taken out of the machine's own part of the store, and then no longer trusted without the policy", func(t *testing.T) {
		r := bootMachine(t, nil)
		withdraw := r.TrustByPolicy(der)
		r.requireNoError(r.Roots.Add(r.ctx, der))
		list, err := r.Roots.Fingerprints(r.ctx)
		r.requireNoError(err)
		if len(list) != len(slices.Compact(slices.Clone(list))) {
			t.Errorf("listed more than once: %q", list)
		}
		r.requireError(r.Roots.Remove(r.ctx, fingerprintOf(der)), host.ErrRefused)
		withdraw()
		if trusts(r) {
			t.Error("it is still trusted")
		}
	})
}

// newCACertificate returns a CA certificate in DER.
func newCACertificate(t *testing.T) []byte {
	t.Helper()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Policy CA"}, IsCA: true,
		BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}
