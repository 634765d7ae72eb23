package monitoring

// ruleGroup is the name of the group of the recording rules, unchanged since before version 12.
const ruleGroup = "windows.rules"

// recording is a recording rule for metrics of windows_exporter. It records under the name that the console,
// the dashboards and the cluster's rules read.
type recording struct {
	record, expr string
}

// recordingRules returns the recording rules. Three facts determine the list:
//
//   - The cluster's rules for node_cpu_seconds_total and node_network_*_bytes_total use the series of every job, and
//     thus already record instance:node_cpu:rate:sum and instance:node_network_*:rate:sum for Windows. A second rule
//     would duplicate each series.
//   - The cluster's rules with job="node-exporter" exclude Windows. The same series are recorded here.
//   - The console selects file systems with device=~"/.*", so that volume C: is device /C:. Volumes without a letter
//     belong to the boot or to containers.
//
// Exporters are scraped every 30 seconds, so that a rate over two minutes always has data.
func recordingRules() []recording {
	const (
		busy    = `windows_cpu_time_total{mode=~"idle|user|privileged"}`
		idle    = `windows_cpu_time_total{mode="idle"}`
		letters = `{volume=~"[A-Z]:"}`
	)
	all := []recording{
		// The time in mode privileged includes the time in modes dpc and interrupt.
		{"node_cpu_seconds_total", `sum without (core) (` + asLabel("cpu", "core",
			`label_replace(`+busy+`, "mode", "system", "mode", "privileged")`) + `)`},
		{"node_cpu_info", `group without (core, mode) (` + asLabel("cpu", "core", idle) + `)`},
		{"instance:node_num_cpu:sum", `count without (core, mode) (` + idle + `)`},
		{"instance:node_cpu_utilisation:rate1m", //nolint:misspell // others have chosen the name
			`1 - avg without (core, mode) (rate(` + idle + `[2m]))`},
		{"node_memory_MemTotal_bytes", `windows_memory_physical_total_bytes`},
		{"node_memory_MemFree_bytes", `windows_memory_physical_free_bytes`},
		{"node_memory_MemAvailable_bytes", `windows_memory_available_bytes`},
		{"instance:node_memory_utilisation:ratio", //nolint:misspell // others have chosen the name
			`1 - windows_memory_available_bytes / windows_memory_physical_total_bytes`},
		{"node_filesystem_size_bytes", volumeToDevice(`windows_logical_disk_size_bytes` + letters)},
		{"node_filesystem_free_bytes", volumeToDevice(`windows_logical_disk_free_bytes` + letters)},
		{"node_filesystem_avail_bytes", volumeToDevice(`windows_logical_disk_free_bytes` + letters)},
		{"instance:node_filesystem_usage:sum", `sum by (instance) (windows_logical_disk_size_bytes` + letters +
			` - windows_logical_disk_free_bytes` + letters + `)`},
		{"instance_device:node_disk_io_time_seconds:rate1m",
			volumeToDevice(`1 - rate(windows_logical_disk_idle_seconds_total` + letters + `[2m])`)},
		{"node_boot_time_seconds", `windows_system_boot_time_timestamp`},
	}
	for _, disk := range [][2]string{
		{"node_disk_read_bytes_total", "windows_logical_disk_read_bytes_total"},
		{"node_disk_written_bytes_total", "windows_logical_disk_write_bytes_total"},
		{"node_disk_reads_completed_total", "windows_logical_disk_reads_total"},
		{"node_disk_writes_completed_total", "windows_logical_disk_writes_total"},
	} {
		all = append(all, recording{disk[0], volumeToDevice(disk[1] + letters)})
	}
	all = append(all, networkRules("receive", "windows_net_bytes_received_total",
		"windows_net_packets_received_discarded_total")...)
	all = append(all, networkRules("transmit", "windows_net_bytes_sent_total",
		"windows_net_packets_outbound_discarded_total")...)
	return append(all, podRules()...)
}

// networkRules returns the rules for one direction.
func networkRules(direction, bytes, drops string) []recording {
	return []recording{
		{"node_network_" + direction + "_bytes_total", `sum without (nic) (` + asLabel("device", "nic", bytes) + `)`},
		{"instance:node_network_" + direction + "_bytes_excluding_lo:rate1m",
			`sum without (nic) (rate(` + bytes + `[2m]))`},
		{"instance:node_network_" + direction + "_drop_excluding_lo:rate1m",
			`sum without (nic) (rate(` + drops + `[2m]))`},
	}
}

// podRules returns the rules for pods. The exporter reads the pod names from containerd; the container that only
// holds the namespaces of the pod has no name.
func podRules() []recording {
	const of = `{pod!="",container!=""}`
	return []recording{
		{"pod:container_cpu_usage:sum",
			`sum by (pod, namespace) (rate(windows_container_cpu_usage_seconds_total` + of + `[5m]))`},
		{"container_memory_working_set_bytes",
			`sum without (container, container_id) (windows_container_memory_usage_private_working_set_bytes` + of + `)`},
		{"pod_interface_network:container_network_receive_bytes:irate5m",
			`sum by (pod, namespace, interface) (irate(windows_container_network_receive_bytes_total{pod!=""}[5m]))`},
		{"pod_interface_network:container_network_transmit_bytes_total:irate5m",
			`sum by (pod, namespace, interface) (irate(windows_container_network_transmit_bytes_total{pod!=""}[5m]))`},
	}
}

// asLabel copies the value of a label to another name in each series of an expression.
func asLabel(label, from, expr string) string {
	return `label_replace(` + expr + `, "` + label + `", "$1", "` + from + `", "(.+)")`
}

// volumeToDevice converts the volume of each series to the device and the mount point of a file system.
func volumeToDevice(expr string) string {
	return `sum without (volume) (label_replace(` + asLabel("mountpoint", "volume", expr) +
		`, "device", "/$1", "volume", "(.+)"))`
}

func rulesSpec(namespace string) map[string]any {
	var list []any
	for _, r := range recordingRules() {
		list = append(list, map[string]any{"record": r.record, "expr": r.expr})
	}
	return map[string]any{"groups": []any{
		map[string]any{"name": ruleGroup, "rules": list},
		map[string]any{"name": alertGroup, "rules": alertRules(namespace)},
	}}
}
