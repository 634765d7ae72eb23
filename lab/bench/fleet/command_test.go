package fleet

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/lab/testenv"
)

func TestFlags(t *testing.T) {
	t.Chdir("../../..")
	good := func() *Options {
		return &Options{Hosts: 2, Operator: "go.mod", Agent: "go.mod", SizePercent: 100, MaxUnavailable: 1,
			Timeout: time.Minute, IdleDuration: time.Second, Scenarios: []Scenario{Idle, Upgrade}}
	}
	controlPlane := "go.mod"
	if err := good().completeFlags(&controlPlane); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		mutate func(*Options)
		want   string
	}{
		"no hosts":          {func(o *Options) { o.Hosts = 0 }, "--hosts=0"},
		"too many hosts":    {func(o *Options) { o.Hosts = 1001 }, "--hosts=1001"},
		"a strange wish":    {func(o *Options) { o.Scenarios = []Scenario{"party"} }, "party"},
		"no time":           {func(o *Options) { o.IdleDuration = 0 }, "above zero"},
		"no operator":       {func(o *Options) { o.Operator = "build/nothing" }, "make build"},
		"the wrong order":   {func(o *Options) { o.Scenarios = []Scenario{Upgrade, Restart} }, "come last"},
		"join a second one": {func(o *Options) { o.Scenarios = []Scenario{Join} }, "join"},
	} {
		t.Run(name+" is refused, and it is said why", func(t *testing.T) {
			o := good()
			c.mutate(o)
			if err := o.completeFlags(&controlPlane); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestNetworkConfig_HasAddressForEachHost(t *testing.T) {
	config := networkConfig(maxHosts, "lab-controlplane")
	seen := map[netip.Addr]bool{}
	for _, address := range config.Addresses {
		seen[address] = true
	}
	if len(seen) != maxHosts+1 || !seen[netip.MustParseAddr(testenv.Address(maxHosts))] {
		t.Errorf("%d addresses", len(seen))
	}
	if config.Names[testenv.DNSName(2)] != netip.MustParseAddr(testenv.Address(2)) {
		t.Errorf("the second host is %s", config.Names[testenv.DNSName(2)])
	}
}
