// Package prometheus has the real Prometheus scrape simulated Windows nodes and the operator, as they run in a cluster:
// what it scrapes and evaluates comes from the ServiceMonitors and the PrometheusRule that the operator has made, through
// the prometheus-operator's own generator.
package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/monitoring"
	"github.com/windows-machine-config/wmco/lab/namespace"
	"github.com/windows-machine-config/wmco/lab/rig"
	"github.com/windows-machine-config/wmco/lab/rig/rigtest"
)

const (
	programs   = "../../build"
	apiAddress = "10.9.255.1"
	domain     = "lab.example.com"
	// every is how often Prometheus scrapes and evaluates here, in place of 30 seconds. It is all that differs: each rule
	// is as the operator has made it.
	every = time.Second
)

// TestMain runs the tests in a network of their own, in which Prometheus reaches nodes by their addresses.
func TestMain(m *testing.M) {
	api := netip.MustParseAddr(apiAddress)
	os.Exit(namespace.RunTests(namespace.Config{
		Addresses: []netip.Addr{api, netip.MustParseAddr(rig.Address(1)), netip.MustParseAddr(rig.Address(2))},
		// The second host of a rig is listed by its name.
		Names: map[string]netip.Addr{"api-int." + domain: api, rig.DNSName(2): netip.MustParseAddr(rig.Address(2))},
	}, func() int { return rigtest.Main(m) }))
}

// lab is a cluster with a Prometheus, two hosts and an operator.
type lab struct {
	*testing.T
	*rig.Rig
	prometheus *monitoring.Monitoring
}

// start boots a lab, and returns when both hosts are Ready.
func start(t *testing.T) lab {
	t.Helper()
	r := rigtest.Boot(t, rig.Options{
		Network: rig.RealNetwork{}, Hosts: rig.Hosts(2), ServiceCA: true,
		ControlPlane: cluster.Options{Listen: net.JoinHostPort(apiAddress, "6443"), Domain: domain},
	})
	rigtest.Install(t, r)
	l := lab{T: t, Rig: r}
	ctx, cancel := context.WithTimeout(t.Context(), rigtest.Patience)
	defer cancel()
	metrics, certificates := net.JoinHostPort(apiAddress, "8443"), filepath.Join(t.TempDir(), "metrics-tls")
	l.must(monitoring.OperatorTarget(ctx, r, metrics, certificates))
	p, err := monitoring.Start(ctx, r, monitoring.Options{Programs: programs, Dir: t.TempDir(), Interval: every})
	l.must(err)
	t.Cleanup(func() {
		p.Stop()
		for _, log := range p.Logs() {
			if content, err := os.ReadFile(log); t.Failed() {
				t.Logf("%s (error %v):\n%s", log, err, content)
			}
		}
	})
	l.prometheus = p
	_, err = r.RunOperator(func(c *operator.Config) {
		c.MetricsAddress, c.MetricsCertificateDirectory = metrics, certificates
	})
	l.must(err)
	l.must(r.ListHosts(ctx))
	l.must(r.WaitReady(ctx))
	return l
}

func (l lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// get asks Prometheus' HTTP API.
func (l lab) get(ctx context.Context, path string, parameters url.Values, data any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.prometheus.URL+"api/v1/"+path+"?"+parameters.Encode(), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", path, answer.Error)
	}
	return nil
}

// until asks again and again, as often as there can be something new.
func (l lab) until(what string, holds func(context.Context) (bool, error)) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), rigtest.Patience)
	defer cancel()
	ticker := time.NewTicker(every / 4)
	defer ticker.Stop()
	for {
		ok, err := holds(ctx)
		if err != nil && ctx.Err() == nil {
			l.Fatalf("%s: %v", what, err)
		}
		if ok {
			return
		}
		select {
		case <-ticker.C:
		case <-l.prometheus.Done():
			l.Fatal(l.prometheus.Failure())
		case <-ctx.Done():
			l.Fatalf("not in time: %s", what)
		}
	}
}

// series are the results of a query at one time.
type series []struct {
	Metric map[string]string
	Value  [2]any
}

// with returns how many have a label.
func (s series) with(label, value string) (n int) {
	for _, each := range s {
		if each.Metric[label] == value {
			n++
		}
	}
	return n
}

func (l lab) query(ctx context.Context, expr string) (series, error) {
	var data struct{ Result series }
	err := l.get(ctx, "query", url.Values{"query": {expr}}, &data)
	return data.Result, err
}

// alert is one that is pending or firing.
type alert struct {
	Labels map[string]string
	State  string
}

func (l lab) alerts(ctx context.Context) ([]alert, error) {
	var data struct{ Alerts []alert }
	err := l.get(ctx, "alerts", nil, &data)
	return data.Alerts, err
}
