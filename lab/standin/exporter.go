package standin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// exporter serves metrics under the names of windows_exporter. R-087
func (t *table) exporter(ctx context.Context, p *node.Process, e payload.Executable) int {
	flags := pflag.NewFlagSet("windows_exporter", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	address := flags.String("web.listen-address", ":9182", "")
	collectors := flags.String("collectors.enabled", "cpu,logical_disk,memory,net,os,service,system", "")
	webConfig := flags.String("web.config.file", "", "")
	for _, name := range strings.Fields("config.file log.level log.format log.file process.priority process.memory-limit telemetry.max-requests") {
		flags.String(name, "", "")
	}
	for _, name := range []string{"web.disable-exporter-metrics", "debug.enabled", "config.file.insecure-skip-verify"} {
		flags.Bool(name, false, "")
	}
	var args []string
	for _, arg := range p.Args {
		if !strings.HasPrefix(arg, "--collector.") { // Each collector has flags of its own.
			args = append(args, arg)
		}
	}
	if err := flags.Parse(args); err != nil {
		return fail(p, "windows_exporter: error: %v, try --help", err)
	}
	_, portText, err := net.SplitHostPort(*address)
	port, portErr := strconv.Atoi(portText)
	if err := errors.Join(err, portErr); err != nil {
		return fail(p, "windows_exporter: listen address %s: %v", *address, err)
	}
	handler := http.NewServeMux()
	handler.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		if err := writeMetrics(r.Context(), w, p, e.Version, strings.Split(*collectors, ",")); err != nil {
			fmt.Fprintf(p.Stderr, "level=error msg=%q\r\n", err)
		}
	})
	handler.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"ok"}`) })
	serving, err := loadWebConfig(p.Machine, *webConfig)
	if err != nil {
		return fail(p, "windows_exporter: %v", err)
	}
	if err := p.Machine.ServeLocal(port, serving.only(handler)); err != nil {
		return fail(p, "windows_exporter: %v", err)
	}
	listener, err := p.Machine.Listen(port)
	if err != nil {
		return fail(p, "windows_exporter: %v", err)
	}
	listener = serving.listener(listener)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(listener); ctx.Err() == nil {
		return fail(p, "windows_exporter: %v", err)
	}
	return 0
}

// writeMetrics has names, types and labels as version 0.31; values are of the simulated host where it has them.
func writeMetrics(ctx context.Context, w io.Writer, p *node.Process, version string, collectors []string) error {
	info, err := p.Host.System.Info(ctx)
	if err != nil {
		return fmt.Errorf("read system facts: %w", err)
	}
	services, err := p.Host.Services.Query(ctx)
	if err != nil {
		return fmt.Errorf("query services: %w", err)
	}
	m := metrics{w}
	m.head("windows_exporter_build_info", "gauge")
	m.value("windows_exporter_build_info", fmt.Sprintf(`version=%q,goos="windows",goarch="amd64"`,
		strings.TrimPrefix(version, "v")), 1)
	m.head("windows_exporter_collector_success", "gauge")
	for _, collector := range collectors {
		m.value("windows_exporter_collector_success", fmt.Sprintf(`collector=%q`, collector), 1)
	}
	m.single("windows_os_info", "gauge", fmt.Sprintf(`product=%q,version=%q,build_number=%q,revision="%d"`,
		info.Product, info.Version, info.Version[strings.LastIndexByte(info.Version, '.')+1:], info.Revision), 1)
	m.single("windows_os_hostname", "gauge", fmt.Sprintf(`hostname=%q,domain=%q,fqdn=%q`, info.HostName,
		info.Domain, info.HostName), 1)
	m.single("windows_cpu_logical_processor", "gauge", "", 4)
	m.head("windows_cpu_time_total", "counter")
	for core := range 4 {
		for _, mode := range []string{"idle", "interrupt", "dpc", "privileged", "user"} {
			m.value("windows_cpu_time_total", fmt.Sprintf(`core="0,%d",mode=%q`, core, mode), 1)
		}
	}
	m.single("windows_memory_physical_total_bytes", "gauge", "", float64(info.MemoryBytes))
	m.single("windows_memory_physical_free_bytes", "gauge", "", float64(info.MemoryBytes)/2)
	m.single("windows_memory_available_bytes", "gauge", "", float64(info.MemoryBytes)/2)
	m.single("windows_logical_disk_size_bytes", "gauge", `volume="C:"`, 127<<30)
	m.single("windows_logical_disk_free_bytes", "gauge", `volume="C:"`, float64(info.FreeDiskBytes))
	m.single("windows_net_bytes_received_total", "counter", `nic="Ethernet"`, 0)
	m.single("windows_net_bytes_sent_total", "counter", `nic="Ethernet"`, 0)
	m.single("windows_system_boot_time_timestamp", "gauge", "", float64(info.BootTime.Unix()))
	m.services(services)
	return nil
}

type metrics struct{ w io.Writer }

func (m metrics) head(name, kind string) {
	fmt.Fprintf(m.w, "# HELP %s %s\n# TYPE %[1]s %s\n", name, strings.ReplaceAll(name, "_", " "), kind)
}

func (m metrics) value(name, labels string, value float64) {
	if labels != "" {
		labels = "{" + labels + "}"
	}
	fmt.Fprintf(m.w, "%s%s %v\n", name, labels, value)
}

func (m metrics) single(name, kind, labels string, value float64) {
	m.head(name, kind)
	m.value(name, labels, value)
}

func (m metrics) services(services []host.Service) {
	m.head("windows_service_state", "gauge")
	states := map[host.ServiceState]string{host.ServiceRunning: "running", host.ServiceStopped: "stopped",
		host.ServiceStartPending: "start pending", host.ServiceStopPending: "stop pending"}
	for _, service := range services {
		for _, state := range []host.ServiceState{host.ServiceRunning, host.ServiceStopped, host.ServiceStartPending,
			host.ServiceStopPending} {
			value := 0.0
			if service.State == state {
				value = 1
			}
			m.value("windows_service_state", fmt.Sprintf(`name=%q,state=%q`, strings.ToLower(service.Name), states[state]),
				value)
		}
	}
}
