package monitoring

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/controller/owned"
)

const (
	// DashboardNamespace is the namespace that OpenShift's console searches for dashboards.
	DashboardNamespace = "openshift-config-managed"
	// DashboardName is the name of the ConfigMap.
	DashboardName = "dashboard-windows-nodes"

	labelDashboard = "console.openshift.io/dashboard"
	dashboardTitle = "Windows nodes"
	dashboardFile  = "windows-nodes.json"
	// nodeVariable is the variable in the queries of the panels for one node.
	nodeVariable = "node"
	nodesQuery   = `wmco_instance_info{node!=""}`
)

// Query is a query of a panel.
type Query struct {
	Expr string
	// Legend names each series; Grafana expands its template.
	Legend string
}

// Panel is a panel of the dashboard.
type Panel struct {
	Title   string
	Unit    string // in the notation of Grafana; empty for a number
	Single  bool   // one number
	Queries []Query
}

// Row is a row of panels.
type Row struct {
	Title  string
	Panels []Panel
}

// Rows returns the dashboard: the fleet, the progress of an upgrade, and one node. Both dashboard files are
// generated from these rows.
func Rows() []Row {
	return []Row{{"Fleet", fleetPanels()}, {"Upgrade", upgradePanels()}, {"Node $" + nodeVariable, nodePanels()}}
}

func fleetPanels() []Panel {
	const volumes = `{job="` + exporterJob + `",device=~"/.*"}`
	return []Panel{
		{Title: "Windows hosts", Single: true, Queries: []Query{{"count(wmco_instance_info)", ""}}},
		{Title: "Ready nodes", Single: true, Queries: []Query{{"sum(wmco_instance_ready)", ""}}},
		{Title: "Scraped nodes", Single: true, Queries: []Query{{`sum(up{job="` + exporterJob + `"})`, ""}}},
		{Title: "Status", Queries: []Query{{"count by (reason) (wmco_instance_status)", "{{reason}}"}}},
		{Title: "Versions", Queries: []Query{{`count by (version) (wmco_instance_info{version!=""})`, "{{version}}"}}},
		{Title: "Configuration on the hosts", Queries: []Query{{"sum by (status) (wmco_nodes_configuration)", "{{status}}"}}},
		{Title: "Failed attempts per second", Queries: []Query{
			{"sum by (reason) (rate(wmco_attempts_failed_total[5m]))", "{{reason}}"}}},
		{Title: "CPU in use", Unit: "percentunit", Queries: []Query{
			{`instance:node_cpu_utilisation:rate1m{job="` + exporterJob + `"}`, "{{instance}}"}}}, //nolint:misspell // others have chosen the name
		{Title: "Memory in use", Unit: "percentunit", Queries: []Query{
			{`instance:node_memory_utilisation:ratio{job="` + exporterJob + `"}`, "{{instance}}"}}}, //nolint:misspell // others have chosen the name
		{Title: "Fullest file system", Unit: "percentunit", Queries: []Query{
			{`max by (instance) (1 - node_filesystem_avail_bytes` + volumes + ` / node_filesystem_size_bytes` + volumes + `)`,
				"{{instance}}"}}},
	}
}

func upgradePanels() []Panel {
	return []Panel{
		{Title: "Nodes of another version", Single: true, Queries: []Query{{"sum(wmco_nodes_outdated)", ""}}},
		{Title: "Stopped", Single: true, Queries: []Query{{"sum(wmco_disruptions_stopped)", ""}}},
		{Title: "Disruption slots", Queries: []Query{{"sum(wmco_nodes_disrupted)", "disrupted"},
			{"sum(wmco_instance_disruption_pending)", "waiting"}}},
		{Title: "Disruptions within an hour", Queries: []Query{
			{"sum by (cause) (increase(wmco_disruptions_total[1h]))", "{{cause}}"},
			{"sum by (cause) (increase(wmco_disruptions_failed_total[1h]))", "{{cause}}, failed"}}},
		{Title: "Duration of jobs on hosts", Unit: "s", Queries: []Query{
			{"sum by (kind) (rate(wmco_job_duration_seconds_sum[15m])) / " +
				"(sum by (kind) (rate(wmco_job_duration_seconds_count[15m])) > 0)", "{{kind}}"}}},
		{Title: "Sent to hosts", Unit: "Bps", Queries: []Query{{"sum(rate(wmco_ssh_sent_bytes_total[5m]))", "bytes"}}},
		{Title: "Files sent within an hour", Queries: []Query{
			{"sum by (form) (increase(wmco_payload_files_sent_total[1h]))", "{{form}}"}}},
	}
}

func nodePanels() []Panel {
	const (
		of    = `{instance=~"$` + nodeVariable + `",job="` + exporterJob + `"}`
		disks = `{instance=~"$` + nodeVariable + `",job="` + exporterJob + `",device=~"/.*"}`
		itsOf = `{node=~"$` + nodeVariable + `"}`
	)
	return []Panel{
		{Title: "Status", Queries: []Query{
			{"wmco_instance_status and on (name) wmco_instance_info" + itsOf, "{{reason}}"}}},
		{Title: "Uptime", Unit: "s", Single: true, Queries: []Query{{"time() - min(node_boot_time_seconds" + of + ")", ""}}},
		{Title: "CPU in use", Unit: "percentunit", Queries: []Query{
			{"instance:node_cpu_utilisation:rate1m" + of, "{{instance}}"}}}, //nolint:misspell // others have chosen the name
		{Title: "Memory", Unit: "bytes", Queries: []Query{
			{"node_memory_MemTotal_bytes" + of + " - node_memory_MemAvailable_bytes" + of, "used"},
			{"node_memory_MemTotal_bytes" + of, "total"}}},
		{Title: "File systems in use", Unit: "percentunit", Queries: []Query{
			{"1 - node_filesystem_avail_bytes" + disks + " / node_filesystem_size_bytes" + disks, "{{mountpoint}}"}}},
		{Title: "Network", Unit: "Bps", Queries: []Query{
			{"sum by (instance) (rate(node_network_receive_bytes_total" + of + "[5m]))", "in"},
			{"sum by (instance) (rate(node_network_transmit_bytes_total" + of + "[5m]))", "out"}}},
		{Title: "Repairs within an hour", Queries: []Query{
			{"sum by (node) (increase(wmco_agent_repairs_total" + itsOf + "[1h]))", "{{node}}"}}},
		{Title: "Remaining validity of certificates", Unit: "s", Queries: []Query{
			{"wmco_certificate_expiry_timestamp_seconds - time() and on (name) wmco_instance_info" + itsOf, "{{certificate}}"},
			{"kubelet_certificate_manager_client_ttl_seconds" + itsOf, "kubelet"}}},
	}
}

// newDashboard returns the ConfigMap with the dashboard of the console. The operator's Namespace owns the ConfigMap.
func newDashboard(namespace *corev1.Namespace) owned.Object {
	return owned.Object{
		Identity: &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: DashboardNamespace, Name: DashboardName},
		},
		Fill: func(object client.Object) {
			c, ok := object.(*corev1.ConfigMap)
			if !ok {
				return
			}
			c.Data = map[string]string{dashboardFile: string(consoleDashboard())}
			setIn(&c.Labels, labelDashboard, "true")
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: namespace.Name,
				UID: namespace.UID}}
		},
	}
}
