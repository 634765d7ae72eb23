package nodespec

import (
	"net/url"
	"testing"
)

func TestReporting(t *testing.T) {
	in := testInputs()
	t.Run("leads to the host's own Node, at the internal API server", func(t *testing.T) {
		for _, server := range []string{"https://api-int.lab.example.com:6443", "https://api-int.lab.example.com:6443/"} {
			in := in
			in.Cluster.APIServerInternalURL = server
			if got, want := mustMake(t, in).Reporting.URL,
				"https://api-int.lab.example.com:6443/api/v1/nodes/win-a"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
	t.Run("trusts the authorities of the API server, and no others", func(t *testing.T) {
		spec := mustMake(t, in)
		if content := fileAt(t, spec, spec.Reporting.CAFile).Content; content != in.Cluster.APIServerCA {
			t.Errorf("%s has %q", spec.Reporting.CAFile, content)
		}
	})
	t.Run("is a URL without anything else in it", func(t *testing.T) {
		parsed, err := url.Parse(mustMake(t, in).Reporting.URL)
		if err != nil || parsed.RawQuery != "" || parsed.User != nil || parsed.Fragment != "" {
			t.Errorf("%+v (%v)", parsed, err)
		}
	})
}
