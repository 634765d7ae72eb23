package main

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/lab/testenv"
)

func TestCompleteOptions(t *testing.T) {
	t.Run("a kind of host that there is not is refused, with those that there are", func(t *testing.T) {
		err := (&demoOptions{host: "cloud", hosts: 2}).completeOptions()
		if err == nil || !strings.Contains(err.Error(), "--host=cloud") || !strings.Contains(err.Error(), "fake and wine") {
			t.Errorf("got %v", err)
		}
	})
	for _, kind := range []string{hostFake, hostWine} {
		t.Run("no host at all is refused for "+kind, func(t *testing.T) {
			err := (&demoOptions{host: kind, wineHosts: func() error { return nil }}).completeOptions()
			if err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("where there can be no Wine hosts it is said why, in one line", func(t *testing.T) {
		want := errors.New("no root")
		if err := (&demoOptions{host: hostWine, hosts: 2, wineHosts: func() error {
			return want
		}}).completeOptions(); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	})
}

func TestDefaultTimeout(t *testing.T) {
	for _, c := range []struct {
		name    string
		options demoOptions
		want    time.Duration
	}{
		{name: "simulated hosts", options: demoOptions{host: hostFake}, want: fakeHostTimeout},
		{name: "Wine hosts", options: demoOptions{host: hostWine}, want: wineHostTimeout},
		{name: "what was asked for", options: demoOptions{host: hostWine, timeout: time.Minute}, want: time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.options.defaultTimeout(); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestNamespaceConfig(t *testing.T) {
	second := netip.MustParseAddr(testenv.Address(2))
	for _, c := range []struct {
		name       string
		options    demoOptions
		hosts      int
		onLoopback bool
	}{
		{"simulated hosts listen on addresses of the loopback interface", demoOptions{host: hostFake, hosts: 2}, 3, true},
		{"Wine hosts have interfaces of their own", demoOptions{host: hostWine, hosts: 2}, 3, false},
		{"nobody adds a Wine host later when the demo does not stay", demoOptions{host: hostWine, hosts: 2, once: true}, 2,
			false},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := c.options.namespaceConfig()
			if got := len(c.options.hostOptions()); got != c.hosts {
				t.Errorf("%d hosts, want %d", got, c.hosts)
			}
			if got := slices.Contains(config.Addresses, second); got != c.onLoopback {
				t.Errorf("the second host's address is on the loopback interface: %t", got)
			}
			if got := config.Names[testenv.DNSName(2)]; got != second {
				t.Errorf("the second host's name leads to %v", got)
			}
			machine := netip.MustParseAddr(testenv.MachineAddress(testenv.MachineAddresses))
			if got := slices.Contains(config.Addresses, machine); got != c.onLoopback {
				t.Errorf("the last address for Machines is on the loopback interface: %t", got)
			}
			if got, ok := config.Names[testenv.DNSName(1)]; ok {
				t.Errorf("the first host, which is listed by address, has a name that leads to %v", got)
			}
		})
	}
}

func TestListedEntries(t *testing.T) {
	for _, kind := range []string{hostFake, hostWine} {
		d := &demo{demoOptions: &demoOptions{host: kind, hosts: 2}}
		got := d.listedEntries()
		if len(got) != 2 || got[testenv.Address(1)] != "username=Administrator" || got[testenv.DNSName(2)] != "username=core" {
			t.Errorf("%s: the entries are %v: want one by address and one by name, and not the one to add later", kind, got)
		}
	}
}

func TestPreparationStage(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ dir, want string }{
		{"bin", "programs"}, {"hosts/base-1", "installing Windows"}, {".standin-1", "what Wine lacks"},
		{".wine-root-1", "chroot"},
	} {
		if err := os.MkdirAll(filepath.Join(dir, c.dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if got := preparationStage(dir); !strings.Contains(got, c.want) {
			t.Errorf("with %s: %q, want %q in it", c.dir, got, c.want)
		}
	}
}
