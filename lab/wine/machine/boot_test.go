//go:build linux

package main

import "testing"

func TestPendingName(t *testing.T) {
	const key = `[System\\ControlSet001\\Services\\Tcpip\\Parameters] 1795268807` + "\n#time=1dd79bec08a3888\n"
	for name, test := range map[string]struct{ registry, want string }{
		"a registry without the key has no name": {"WINE REGISTRY Version 2\n", ""},
		"the name is the key's":                  {key + "\"Domain\"=\"\"\n\"Hostname\"=\"one\"\n", "one"},
		"a name in another key is not taken":     {key + "\n[System\\\\Select]\n\"Hostname\"=\"other\"\n", ""},
		"of two names the last is taken, as Wine does": {key + "\"Hostname\"=\"base\"\n\n" + key + "\"Hostname\"=\"one\"\n",
			"one"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pendingName([]byte(test.registry)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
