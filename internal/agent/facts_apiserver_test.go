package agent_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/plan"
)

const apiServerURL = "https://api-int.lab.example.com:6443"

// outside is a network with the given names; addresses in closed refuse connections.
type outside struct {
	names  map[string][]string
	closed []string
}

// LookupHost implements fake.Network.
func (o outside) LookupHost(_ context.Context, name string) ([]string, error) {
	if addresses := o.names[name]; len(addresses) > 0 {
		return addresses, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// DialContext implements fake.Network.
func (o outside) DialContext(_ context.Context, _, address string) (net.Conn, error) {
	if slices.Contains(o.closed, address) {
		return nil, errors.New(address + " actively refused it")
	}
	near, _ := net.Pipe()
	return near, nil
}

// apiServerFacts returns the API server facts of a machine in this network.
func apiServerFacts(t *testing.T, network fake.Network, prepare func(*rig)) *plan.APIServerFacts {
	t.Helper()
	r := newRig(t, func(o *fake.Options) { o.Network = network }).start()
	prepare(r)
	line, _ := r.run("facts", "--api-server", apiServerURL)
	if line.Result == nil || line.Result.Facts == nil || line.Result.Facts.APIServer == nil {
		t.Fatalf("%s without an API server: %+v", line.Type, line.Failure)
	}
	if line.Result.Facts.System.HostName == "" || line.Result.Facts.APIServer.URL != apiServerURL {
		t.Errorf("%+v of %+v", line.Result.Facts.APIServer, line.Result.Facts.System)
	}
	return line.Result.Facts.APIServer
}

// the host's own resolver and routes are used, before anything is changed.
func TestFacts_ReportAPIServerReachability(t *testing.T) {
	t.Parallel()
	const address = "10.0.0.2"
	two := map[string][]string{"api-int.lab.example.com": {address, "10.0.0.3"}}
	untouched := func(*rig) {}

	t.Run("one that resolves the name and connects says to where", func(t *testing.T) {
		t.Parallel()
		got := apiServerFacts(t, outside{names: two}, untouched)
		if got.Error != "" || !slices.Equal(got.Resolved, two["api-int.lab.example.com"]) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("one address that takes connections is enough", func(t *testing.T) {
		t.Parallel()
		if got := apiServerFacts(t, outside{names: two, closed: []string{address + ":6443"}}, untouched); got.Error != "" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a name that its DNS does not have is reported", func(t *testing.T) {
		t.Parallel()
		got := apiServerFacts(t, outside{}, untouched)
		if !strings.Contains(got.Error, "the name api-int.lab.example.com does not resolve on the host") || len(got.Resolved) > 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a closed port is reported, with the address", func(t *testing.T) {
		t.Parallel()
		got := apiServerFacts(t, outside{names: two, closed: []string{address + ":6443", "10.0.0.3:6443"}}, untouched)
		if !strings.Contains(got.Error, "cannot connect to api-int.lab.example.com:6443") || !strings.Contains(got.Error, address) || len(got.Resolved) != 2 {
			t.Errorf("%+v", got)
		}
	})
	for silent, want := range map[string]string{"api-int.lab.example.com": "does not resolve", address: "cannot connect"} {
		t.Run(silent+" that never answers is waited for only so long", func(t *testing.T) {
			t.Parallel()
			one := map[string][]string{"api-int.lab.example.com": {address}}
			start := time.Now()
			got := apiServerFacts(t, outside{names: one}, func(r *rig) { r.Silence(silent) })
			if !strings.Contains(got.Error, want) || !strings.Contains(got.Error, "no response within "+timeouts.APIServerTimeout.String()) {
				t.Errorf("%+v", got)
			}
			if elapsed := time.Since(start); elapsed > timeouts.APIServerTimeout+30*time.Second {
				t.Errorf("it took %s", elapsed)
			}
		})
	}
	t.Run("without the flag it is not asked", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).start()
		if line, _ := r.run("facts"); line.Result == nil || line.Result.Facts.APIServer != nil {
			t.Errorf("%+v", line)
		}
	})
}

func TestFacts_InvalidAPIServerURLRejected(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	for _, word := range []string{
		"http://api-int.example.com:6443", "https://api-int.example.com", "https://:6443", "https://api-int.example.com:0",
		"https://api-int.example.com:65536", "https://user:word@api-int.example.com:6443", "https://api-int.example.com:6443/",
		"https://api-int.example.com:6443?x", "https://-a:6443", "https://a&b:6443", "api-int.example.com:6443", "https://api_int:%31",
	} {
		line, _ := r.run("facts", "--api-server", word)
		if line.Type != agentapi.TypeFailure || line.Failure.Reason != agentapi.ReasonInvalidInput {
			t.Errorf("%s: %s", word, line.Type)
		}
	}
	if line, _ := r.run("verify", "--api-server", apiServerURL); line.Type != agentapi.TypeFailure {
		t.Error("another verb takes the flag")
	}
}
