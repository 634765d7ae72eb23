// Package prometheus has the real Prometheus scrape simulated Windows nodes and the operator as in a cluster. The
// scrape configuration and the rules come from the ServiceMonitors and the PrometheusRule that the operator has
// created, through the prometheus-operator's own generator.
package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/linuxns"
	"github.com/windows-machine-config/wmco/lab/monitoring"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

const (
	programs   = "../../build"
	apiAddress = "10.9.255.1"
	domain     = "lab.example.com"
	// scrapeInterval is the scrape and evaluation interval here, instead of 30 seconds. All other settings and rules
	// are unchanged.
	scrapeInterval = time.Second
)

// TestMain runs the tests in a separate network, where Prometheus reaches nodes by address.
func TestMain(m *testing.M) {
	api := netip.MustParseAddr(apiAddress)
	os.Exit(linuxns.RunTests(linuxns.Config{
		Addresses: []netip.Addr{api, netip.MustParseAddr(testenv.Address(1)), netip.MustParseAddr(testenv.Address(2)),
			netip.MustParseAddr(testenv.Address(3))},
		// The second host of an environment is listed by its name.
		Names: map[string]netip.Addr{"api-int." + domain: api, testenv.DNSName(2): netip.MustParseAddr(testenv.Address(2))},
	}, func() int { return e2e.Main(m) }))
}

// monitored lists the hosts that are nodes from the start.
var monitored = []string{"instance-1", "instance-2"}

// lab is a cluster with a Prometheus, hosts and an operator.
type lab struct {
	*testing.T
	*testenv.Environment
	prometheus     *monitoring.Monitoring
	operator       *testenv.Operator
	startOperator  func() *testenv.Operator
	resumeRenewals func()                  // nil: the control plane signs
	fast           *clocktesting.FakeClock // clock of hosts and operator; nil: the real clock
}

// start boots a lab, and returns when the named hosts are Ready.
func start(t *testing.T, options testenv.Options, listed ...string) lab {
	t.Helper()
	options.Network, options.ServiceCA = testenv.RealNetwork{}, true
	options.ControlPlane.Listen, options.ControlPlane.Domain = net.JoinHostPort(apiAddress, "6443"), domain
	l := lab{T: t, Environment: e2e.Boot(t, options)}
	if options.ControlPlane.ExternalSigner {
		l.resumeRenewals = l.startSigner()
	}
	e2e.Install(t, l.Environment)
	ctx, cancel := context.WithTimeout(t.Context(), e2e.WaitTimeout)
	defer cancel()
	metrics, certificates := net.JoinHostPort(apiAddress, "8443"), filepath.Join(t.TempDir(), "metrics-tls")
	l.requireNoError(monitoring.OperatorTarget(ctx, l.Environment, metrics, certificates))
	p, err := monitoring.Start(ctx, l.Environment, monitoring.Options{Programs: programs, Dir: t.TempDir(), Interval: scrapeInterval})
	l.requireNoError(err)
	t.Cleanup(func() {
		p.Stop()
		for _, log := range p.Logs() {
			if content, err := os.ReadFile(log); t.Failed() {
				t.Logf("%s (error %v):\n%s", log, err, content)
			}
		}
	})
	l.prometheus = p
	l.startOperator = func() *testenv.Operator {
		o, err := l.RunOperator(func(c *operator.Config) { c.MetricsAddress, c.MetricsCertificateDirectory = metrics, certificates })
		l.requireNoError(err)
		return o
	}
	l.operator = l.startOperator()
	l.requireNoError(l.ListHosts(ctx, listed...))
	l.requireNoError(l.WaitReady(ctx, listed...))
	return l
}

// forSubtest returns the lab for a subtest.
func (l lab) forSubtest(t *testing.T) lab {
	l.T = t
	return l
}

func (l lab) requireNoError(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// get queries Prometheus' HTTP API.
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

// waitUntil polls four times per scrape interval until the condition holds.
func (l lab) waitUntil(what string, holds func(context.Context) (bool, error)) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), e2e.WaitTimeout)
	defer cancel()
	ticker := time.NewTicker(scrapeInterval / 4)
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

// series is the result of a query at one time.
type series []struct {
	Metric map[string]string
	Value  [2]any
}

// countLabel counts the results that have a label.
func (s series) countLabel(label, value string) (n int) {
	for _, each := range s {
		if each.Metric[label] == value {
			n++
		}
	}
	return n
}

func (l lab) runQuery(ctx context.Context, expr string) (series, error) {
	var data struct{ Result series }
	err := l.get(ctx, "query", url.Values{"query": {expr}}, &data)
	return data.Result, err
}

// alert is a pending or firing alert.
type alert struct {
	Labels, Annotations map[string]string
	State               string
}

// firingAlerts returns the firing alerts.
func (l lab) firingAlerts(ctx context.Context) ([]alert, error) {
	var data struct{ Alerts []alert }
	err := l.get(ctx, "alerts", nil, &data)
	return slices.DeleteFunc(data.Alerts, func(a alert) bool { return a.State != "firing" }), err
}

// advanceClock advances only Prometheus' clock.
func (l lab) advanceClock(by time.Duration) {
	l.Helper()
	if by <= 0 {
		return
	}
	request, err := http.NewRequestWithContext(l.Context(), http.MethodPost, l.prometheus.URL+"lab/forward?by="+by.String(), nil)
	l.requireNoError(err)
	response, err := http.DefaultClient.Do(request)
	l.requireNoError(err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		reason, err := io.ReadAll(response.Body)
		l.Fatalf("%s: %s (error %v)", request.URL, reason, err)
	}
}

// advanceClockTo advances Prometheus' clock to a moment.
func (l lab) advanceClockTo(moment time.Time) {
	l.Helper()
	now, err := l.runQuery(l.Context(), "vector(time())")
	l.requireNoError(err)
	text, _ := now[0].Value[1].(string)
	seconds, err := strconv.ParseFloat(text, 64)
	l.requireNoError(err)
	l.advanceClock(moment.Sub(time.UnixMilli(int64(seconds * 1000))))
}
