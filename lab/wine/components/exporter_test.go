package components_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/wine"
	"github.com/windows-machine-config/wmco/lab/wine/standin"
)

const (
	exporterProgram = `C:\tests\windows_exporter.exe`
	exporterLog     = `C:\var\log\windows_exporter\windows_exporter.log`
	exporterClients = `C:\k\tls\certs\client-ca.crt`
	exporterAddress = "10.2.0.7"
	// exporterName is the name that the ServiceMonitor expects in the certificate.
	exporterName = "windows-exporter.openshift-windows-machine-config-operator.svc"
)

// The real windows_exporter runs under Wine with the flags, web configuration and certificate from the
// operator. The scrape manager of the real Prometheus scrapes it as the ServiceMonitor specifies. wineCollectors
// lists the collectors that work under Wine. R-087
func TestExporter_AnswersAuthorizedClientsOnly(t *testing.T) {
	built, program := buildExecutable(t, "windows_exporter", "windows_exporter.exe"), buildScraper(t)
	ctx := requireWine(t)
	serving, clients, otherAuthority := newAuthority(t, "service CA"), newAuthority(t, "clients"), newAuthority(t, "others")
	certificate, key := serving.issueCertificate(t, exporterName)
	in := inputsOf(nodespec.Registries{})
	in.Cluster.MetricsServing = nodespec.ServingCertificate{Certificate: string(certificate), Key: nodespec.Secret(key),
		ClientCA: string(clients.pem)}
	spec, err := nodespec.Make(in)
	requireNoError(t, err)
	files := map[string]string{
		exporterProgram: built, exporterLog: writeLocalFile(t, nil), `C:\windows\system32\mi.dll`: buildLibrary(t, "mi"),
	}
	for _, file := range spec.Files {
		if nodespec.IsWithin(file.Path, `C:\k\tls`) {
			files[file.Path] = writeLocalFile(t, file.Bytes())
		}
	}
	h := start(ctx, t, wine.Options{Name: "EXPORTER", Address: netip.MustParseAddr(exporterAddress), Files: files})
	startProgram(ctx, t, h, exporterProgram+" "+strings.Join(serviceArguments(t, spec, nodespec.ServiceExporter), " "))
	prometheus := newScraper(t, program, serving, clients, "system:serviceaccount:openshift-monitoring:prometheus-k8s")
	awaitExporter(ctx, t, h, prometheus)

	t.Run("a client of the cluster's authority gets the metrics of all collectors that work under Wine", func(t *testing.T) {
		samples, err := prometheus.scrapeExporter(ctx)
		requireNoError(t, err)
		if got := successfulCollectors(samples); !slices.Equal(got, wineCollectors) {
			t.Errorf("collectors that succeed: %q, want %q\n%s", got, wineCollectors, readLog(t, h))
		}
		for _, name := range []string{"windows_memory_physical_total_bytes", "windows_memory_physical_free_bytes", "windows_os_hostname",
			"windows_service_state"} {
			if samples[name] == "" {
				t.Errorf("there is no %s", name)
			}
		}
	})
	t.Run("one without a certificate is refused", func(t *testing.T) {
		if _, err := newScraper(t, program, serving, nil, "").scrapeExporter(ctx); !isRefused(err, "certificate required") {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("as is one of another authority", func(t *testing.T) {
		if _, err := newScraper(t, program, serving, otherAuthority, "prometheus").scrapeExporter(ctx); !isRefused(err, "tls:") {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("and one that speaks plain HTTP", func(t *testing.T) {
		response, err := (&http.Client{Timeout: 10 * time.Second}).Get("http://" + exporterAddress + ":9182/metrics")
		requireNoError(t, err)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusBadRequest {
			t.Errorf("the status is %d", response.StatusCode)
		}
	})
	t.Run("a rotation of the authorities cuts nobody off, and needs no restart", func(t *testing.T) {
		next := newScraper(t, program, serving, otherAuthority, "prometheus")
		replaceFile(t, h, exporterClients, append(slices.Clone(clients.pem), otherAuthority.pem...))
		for name, s := range map[string]scraper{"before": prometheus, "next": next} {
			if _, err := s.scrapeExporter(ctx); err != nil {
				t.Errorf("with both authorities there, a client with the certificate of the one %s: %v", name, err)
			}
		}
		replaceFile(t, h, exporterClients, otherAuthority.pem)
		if _, err := next.scrapeExporter(ctx); err != nil {
			t.Error(err)
		}
		if _, err := prometheus.scrapeExporter(ctx); err == nil {
			t.Error("an authority that is gone still lets clients in")
		}
	})
}

// isRefused reports whether a server rejected a client certificate. With TLS 1.3, the client completes the
// handshake before the server checks the client certificate. The client may therefore still write the request
// after the server has sent the reason and closed the connection.
func isRefused(err error, reason string) bool {
	return err != nil && (strings.Contains(err.Error(), reason) || strings.Contains(err.Error(), "connection reset by peer") ||
		strings.Contains(err.Error(), "broken pipe"))
}

// wineCollectors are the collectors of the operator's list that succeed under Wine. The remaining collectors read
// performance counters, WMI or containers, which Wine does not have. The collectors memory and net return
// partial results without these sources.
var wineCollectors = []string{"os", "service"}

// successfulCollectors returns the collectors that report success in their own metric.
func successfulCollectors(samples map[string]string) (names []string) {
	for line := range strings.Lines(samples["windows_exporter_collector_success"]) {
		_, name, _ := strings.Cut(line, `collector="`)
		if name, rest, _ := strings.Cut(name, `"`); strings.HasSuffix(strings.TrimSpace(rest), " 1") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// scraper scrapes the exporter with the scrape manager of Prometheus, as the ServiceMonitor specifies.
type scraper struct{ program, config string }

// newScraper returns a scraper with a client certificate for a name from the authority `of`; without a
// certificate if it is nil.
func newScraper(t *testing.T, program string, serving, of *issuer, name string) scraper {
	t.Helper()
	var monitor struct {
		Endpoints []struct {
			Scheme, Path string
			TLSConfig    struct{ ServerName string }
		}
	}
	content, err := os.ReadFile(filepath.Join(repository, "lab/prometheus/testdata/servicemonitor.yaml"))
	requireNoError(t, err)
	requireNoError(t, yaml.Unmarshal(content, &monitor))
	endpoint := monitor.Endpoints[0]
	secure := map[string]any{"ca_file": writeLocalFile(t, serving.pem), "server_name": endpoint.TLSConfig.ServerName}
	if of != nil {
		certificate, key := of.issueCertificate(t, name)
		secure["cert_file"], secure["key_file"] = writeLocalFile(t, certificate), writeLocalFile(t, key)
	}
	config, err := yaml.Marshal(map[string]any{"scrape_configs": []any{map[string]any{"job_name": "windows-exporter", "scheme": endpoint.Scheme,
		"metrics_path": endpoint.Path, "scrape_interval": "2s", "scrape_timeout": "2s", "tls_config": secure}}})
	requireNoError(t, err)
	return scraper{program, writeLocalFile(t, config)}
}

// scrapeExporter returns the samples by metric name, one line per sample with labels and value.
func (s scraper) scrapeExporter(ctx context.Context) (map[string]string, error) {
	var stderr strings.Builder
	command := exec.CommandContext(ctx, s.program, s.config, exporterAddress+":9182")
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, stderr.String())
	}
	samples := map[string]string{}
	for line := range strings.Lines(string(output)) {
		_, name, _ := strings.Cut(line, `__name__="`)
		name, _, _ = strings.Cut(name, `"`)
		samples[name] += line
	}
	return samples, nil
}

// buildScraper builds the scraper program. The build is slow if Prometheus was not compiled before.
func buildScraper(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scrape")
	if output, err := inPrometheus(t.Context(), "build", "-buildvcs=false", "-o", path, "./scrape").CombinedOutput(); err != nil {
		t.Fatalf("build the scraper: %v\n%s", err, output)
	}
	return path
}

// awaitExporter waits until the exporter answers a scrape.
func awaitExporter(ctx context.Context, t *testing.T, h *wine.Host, s scraper) {
	t.Helper()
	for {
		_, err := s.scrapeExporter(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%v\n%s", err, readLog(t, h))
		case <-time.After(250 * time.Millisecond):
		}
	}
}

func readLog(t *testing.T, h *wine.Host) string {
	t.Helper()
	path, err := h.Path(exporterLog)
	requireNoError(t, err)
	content, err := os.ReadFile(path)
	requireNoError(t, err)
	return string(content)
}

// replaceFile replaces a file atomically, as the agent does.
func replaceFile(t *testing.T, h *wine.Host, windows string, content []byte) {
	t.Helper()
	path, err := h.Path(windows)
	requireNoError(t, err)
	requireNoError(t, os.WriteFile(path+".new", content, 0o644))
	requireNoError(t, os.Rename(path+".new", path))
}

func buildLibrary(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".dll")
	command := exec.CommandContext(t.Context(), standin.Compiler, "-shared", "-O2", "-Wall", "-o", path, filepath.Join("testdata", name+".c"))
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command.Args, " "), err, output)
	}
	return path
}

// startProgram starts a program that ends with the test.
func startProgram(ctx context.Context, t *testing.T, h *wine.Host, line string) {
	t.Helper()
	client, err := h.Connect(ctx)
	requireNoError(t, err)
	session, err := client.NewSession()
	requireNoError(t, err)
	var output strings.Builder
	session.Stdout, session.Stderr = &output, &output
	requireNoError(t, session.Start(line))
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }() // the test ends it
	t.Cleanup(func() {
		_ = client.Close()
		if err := <-ended; t.Failed() {
			t.Logf("%s ended with %v and said:\n%s", line, err, output.String())
		}
	})
}

// Our rules, our dashboard and the simulated exporter may only name metrics that the real exporter describes in
// the collectors that the operator enables.
func TestExporter_DescribesMetricsOfRules(t *testing.T) {
	spec := specOf(t, nodespec.Registries{})
	words := serviceArguments(t, spec, nodespec.ServiceExporter)
	i := slices.Index(words, "--collectors.enabled")
	described, err := describedBy(t.Context(), strings.Split(words[i+1], ","))
	requireNoError(t, err)
	used := map[string]bool{}
	for _, file := range []string{"lab/prometheus/testdata/rules.yaml", "lab/standin/exportermetrics.go"} {
		content, err := os.ReadFile(filepath.Join(repository, file))
		requireNoError(t, err)
		named := metricsIn(string(content))
		if len(named) == 0 {
			t.Errorf("%s names no metric of the exporter", file)
		}
		for name := range named {
			used[name] = true
		}
	}
	if len(used) < 15 || len(described) < 50 {
		t.Fatalf("%d metrics of the exporter are named, and it describes %d", len(used), len(described))
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !described[name] {
			t.Errorf("no enabled collector of windows_exporter describes %s", name)
		}
	}
}
