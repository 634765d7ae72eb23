package windows

import "testing"

func TestProductNames(t *testing.T) {
	for name, c := range map[string]struct {
		registered, edition string
		build               uint32
		server              bool
		want                string
	}{
		"the registry's name stands when it agrees with the build": {
			"Windows Server 2022 Datacenter Azure Edition", "ServerTurbine", 20348, true,
			"Windows Server 2022 Datacenter Azure Edition",
		},
		"a server that was upgraded in place is called what it is": {
			"Windows Server 2019 Datacenter", "ServerDatacenter", 20348, true, "Windows Server 2022 Datacenter",
		},
		"Server Core is the same product": {
			"Windows 10 Pro", "ServerStandardCor", 17763, true, "Windows Server 2019 Standard",
		},
		"an edition without a known name goes by the release": {
			"", "ServerSomething", 20348, true, "Windows Server 2022",
		},
		"the maker's name is no part of the product's": {
			"Microsoft Windows Server 2019 Standard", "ServerStandard", 17763, true, "Windows Server 2019 Standard",
		},
		"a release that is not known keeps its name": {
			"Windows Server 2031 Standard", "ServerStandard", 31000, true, "Windows Server 2031 Standard",
		},
		"a workstation is not called a server, whatever its build": {
			"Windows 10 Pro", "Professional", 20348, false, "Windows 10 Pro",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := productName(c.registered, c.edition, c.build, c.server); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
