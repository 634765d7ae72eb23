package standin

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// Properties of a simulated host that host.SystemInfo lacks.
const (
	processors = 4
	volumeSize = 127 << 30
	// linkSpeed is the network speed in bytes per second.
	linkSpeed = 125e6
	// clockTicks is the number of clock interrupts per second on each processor.
	clockTicks = 64
)

// scrape is one response of the exporter.
type scrape struct {
	metrics
	host      string
	info      host.SystemInfo
	sinceBoot time.Duration
	services  []host.Service
}

// writeMetrics writes metrics with the names, types and labels of windows_exporter version 0.31, for the
// enabled collectors. Facts of the simulated host are true: memory, disk space used by the operator, boot time,
// services. The use of processors, memory and network, and other disk content, are invented: see load. No
// container runs, so there are no container series.
func writeMetrics(ctx context.Context, w io.Writer, p *node.Process, version string, now time.Time,
	collectors []string,
) error {
	info, err := p.Host.System.Info(ctx)
	if err != nil {
		return fmt.Errorf("read system facts: %w", err)
	}
	services, err := p.Host.Services.Query(ctx)
	if err != nil {
		return fmt.Errorf("query services: %w", err)
	}
	s := scrape{metrics: metrics{w}, host: info.HostName, info: info, services: services,
		sinceBoot: max(0, now.Sub(info.BootTime))}
	s.writeSingle("windows_exporter_build_info", "gauge", fmt.Sprintf(`version=%q,goos="windows",goarch="amd64"`,
		strings.TrimPrefix(version, "v")), 1)
	s.writeHead("windows_exporter_collector_success", "gauge")
	for _, collector := range collectors {
		s.writeValue("windows_exporter_collector_success", fmt.Sprintf(`collector=%q`, collector), 1)
	}
	for _, c := range []struct {
		name  string
		write func()
	}{
		{"container", s.writeContainers}, {"cpu", s.writeProcessors}, {"logical_disk", s.writeVolumes}, {"memory", s.writeMemory},
		{"net", s.writeNetwork}, {"os", s.writeSystem}, {"service", s.writeServiceStates}, {"system", s.writeBootTime},
	} {
		if slices.Contains(collectors, c.name) {
			c.write()
		}
	}
	return nil
}

// writeContainers reports no containers: the simulated containerd starts no process.
func (s scrape) writeContainers() { s.writeSingle("windows_container_count", "gauge", "", 0) }

func (s scrape) writeProcessors() {
	s.writeSingle("windows_cpu_logical_processor", "gauge", "", processors)
	var busy [processors]float64
	for core := range processors {
		busy[core] = loadOf(s.host, "cpu "+strconv.Itoa(core), 0.02, 0.85).totalUntil(s.sinceBoot)
	}
	s.writeHead("windows_cpu_time_total", "counter")
	for core := range processors {
		for _, mode := range []struct {
			name    string
			seconds float64
		}{
			{"idle", s.sinceBoot.Seconds() - busy[core]}, {"user", busy[core] * 0.7},
			// privileged includes interrupt and dpc.
			{"privileged", busy[core] * 0.3}, {"interrupt", busy[core] * 0.02}, {"dpc", busy[core] * 0.03},
		} {
			s.writeValue("windows_cpu_time_total", fmt.Sprintf(`core="0,%d",mode=%q`, core, mode.name), mode.seconds)
		}
	}
	s.writeHead("windows_cpu_clock_interrupts_total", "counter")
	for core := range processors {
		s.writeValue("windows_cpu_clock_interrupts_total", fmt.Sprintf(`core="0,%d"`, core), s.sinceBoot.Seconds()*clockTicks)
	}
}

func (s scrape) writeMemory() {
	total := float64(s.info.MemoryBytes)
	available := total * (1 - loadOf(s.host, "memory", 0.2, 0.9).valueAt(s.sinceBoot))
	s.writeSingle("windows_memory_physical_total_bytes", "gauge", "", total)
	s.writeSingle("windows_memory_physical_free_bytes", "gauge", "", available)
	s.writeSingle("windows_memory_available_bytes", "gauge", "", available)
	s.writeSingle("windows_memory_committed_bytes", "gauge", "", total-available)
	s.writeSingle("windows_memory_commit_limit", "gauge", "", total*1.25)
}

func (s scrape) writeVolumes() {
	const of = `volume="C:"`
	busy := loadOf(s.host, "disk", 0, 0.5)
	otherFiles := loadOf(s.host, "files", 10<<30, 90<<30).mean // besides the content of the simulated disk
	reads, writes := loadOf(s.host, "reads", 0, 300), loadOf(s.host, "writes", 0, 120)
	s.writeSingle("windows_logical_disk_size_bytes", "gauge", of, volumeSize)
	s.writeSingle("windows_logical_disk_free_bytes", "gauge", of, max(0, float64(s.info.FreeDiskBytes)-otherFiles))
	s.writeSingle("windows_logical_disk_idle_seconds_total", "counter", of, s.sinceBoot.Seconds()-busy.totalUntil(s.sinceBoot))
	s.writeSingle("windows_logical_disk_reads_total", "counter", of, reads.totalUntil(s.sinceBoot))
	s.writeSingle("windows_logical_disk_read_bytes_total", "counter", of, reads.totalUntil(s.sinceBoot)*(16<<10))
	s.writeSingle("windows_logical_disk_writes_total", "counter", of, writes.totalUntil(s.sinceBoot))
	s.writeSingle("windows_logical_disk_write_bytes_total", "counter", of, writes.totalUntil(s.sinceBoot)*(32<<10))
}

func (s scrape) writeNetwork() {
	const of = `nic="Ethernet"`
	in, out := loadOf(s.host, "received", 0, linkSpeed/50), loadOf(s.host, "sent", 0, linkSpeed/50)
	received, sent := in.totalUntil(s.sinceBoot), out.totalUntil(s.sinceBoot)
	s.writeSingle("windows_net_bytes_received_total", "counter", of, received)
	s.writeSingle("windows_net_bytes_sent_total", "counter", of, sent)
	s.writeSingle("windows_net_bytes_total", "counter", of, received+sent)
	s.writeSingle("windows_net_packets_received_total", "counter", of, received/900)
	s.writeSingle("windows_net_packets_sent_total", "counter", of, sent/900)
	for _, name := range []string{
		"windows_net_packets_received_discarded_total",
		"windows_net_packets_received_errors_total",
		"windows_net_packets_outbound_discarded_total",
		"windows_net_packets_outbound_errors_total",
	} {
		s.writeSingle(name, "counter", of, 0)
	}
	s.writeSingle("windows_net_current_bandwidth_bytes", "gauge", of, linkSpeed)
}

func (s scrape) writeSystem() {
	version := s.info.Version
	s.writeSingle("windows_os_info", "gauge", fmt.Sprintf(`product=%q,version=%q,build_number=%q,revision="%d"`,
		s.info.Product, version, version[strings.LastIndexByte(version, '.')+1:], s.info.Revision), 1)
	s.writeSingle("windows_os_hostname", "gauge", fmt.Sprintf(`hostname=%q,domain=%q,fqdn=%q`, s.info.HostName,
		s.info.Domain, s.info.HostName), 1)
}

func (s scrape) writeBootTime() {
	s.writeSingle("windows_system_boot_time_timestamp", "gauge", "", float64(s.info.BootTime.Unix()))
}

func (s scrape) writeServiceStates() {
	s.writeHead("windows_service_state", "gauge")
	states := map[host.ServiceState]string{host.ServiceRunning: "running", host.ServiceStopped: "stopped",
		host.ServiceStartPending: "start pending", host.ServiceStopPending: "stop pending"}
	for _, service := range s.services {
		for _, state := range []host.ServiceState{host.ServiceRunning, host.ServiceStopped, host.ServiceStartPending,
			host.ServiceStopPending} {
			value := 0.0
			if service.State == state {
				value = 1
			}
			s.writeValue("windows_service_state", fmt.Sprintf(`name=%q,state=%q`, strings.ToLower(service.Name), states[state]),
				value)
		}
	}
}

// metrics writes metrics in the text format of Prometheus.
type metrics struct{ w io.Writer }

func (m metrics) writeHead(name, kind string) {
	fmt.Fprintf(m.w, "# HELP %s %s\n# TYPE %[1]s %[3]s\n", name, strings.ReplaceAll(name, "_", " "), kind)
}

func (m metrics) writeValue(name, labels string, value float64) {
	if labels != "" {
		labels = "{" + labels + "}"
	}
	fmt.Fprintf(m.w, "%s%s %v\n", name, labels, value)
}

func (m metrics) writeSingle(name, kind, labels string, value float64) {
	m.writeHead(name, kind)
	m.writeValue(name, labels, value)
}
