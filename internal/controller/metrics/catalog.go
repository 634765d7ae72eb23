package metrics

// Labels of several metrics.
var (
	causeLabel  = Label{"cause", "causes of a disruption", 8}
	nodeLabel   = Label{Name: "node", Values: "one for each Windows node"}
	reasonLabel = Label{"reason", "reasons of conditions.md", 128}
)

// nameLabel is the label of metrics with one series per WindowsInstance.
var nameLabel = Label{Name: "name", Values: "one for each `WindowsInstance`"}

// workBuckets are in seconds, from the inspection of a host to the installation of Windows features.
var workBuckets = []float64{.5, 2, 10, 30, 60, 300, 900, 3600}

// Metrics of the cluster.
var (
	ClusterSupported = newStateGauge("wmco_cluster_supported",
		"1 if the operator supports the cluster, 0 otherwise; the label reason is the cause.")
	SettingsNotFollowed = newGauge("wmco_unsupported_settings",
		"Settings of the cluster, such as registry mirrors, that Windows nodes do not follow, or only in part.")
	MonitoringEnabled = newStateGauge("wmco_monitoring_enabled",
		"1 if the cluster's Prometheus is configured to scrape Windows nodes, 0 otherwise; the label reason is the cause.")
)

// Metrics of the work on hosts.
var (
	// Attempts counts the completed reconciles of instances. See Outcome.
	Attempts = newCounters("wmco_attempts_total",
		"Attempts to configure a host with its desired state, by outcome: done, waiting, or failed.",
		Label{"outcome", "`done`, `waiting`, `failed`", 3})
	AttemptsFailed = newCounters("wmco_attempts_failed_total",
		"Failed attempts to configure a host with its desired state, by reason. The operator retries each attempt.", reasonLabel)
	JobDuration = newHistograms("wmco_job_duration_seconds",
		"Duration of a job on a Windows host, without the wait for a worker slot.",
		workBuckets, Label{"kind", "kinds of jobs", 24})
	Steps = newCounters("wmco_steps_total",
		"Steps that agents have completed on Windows hosts, by kind.", Label{"step", "kinds of steps", 64})
	Connections = newCounter("wmco_ssh_connections_total",
		"SSH connections to hosts after the login.")
	Sessions = newCounter("wmco_ssh_sessions_total",
		"SSH sessions, for agent commands and file transfers.")
	BytesSent = newCounter("wmco_ssh_sent_bytes_total",
		"Bytes sent to hosts, including SSH overhead.")
	FilesSent = newCounters("wmco_payload_files_sent_total",
		"Files of the payload that the operator sent to hosts, by form.",
		Label{"form", "`file`, `patch`", 2})
)

// Metrics of the nodes.
var (
	NodesMonitored = newGauge("wmco_nodes_monitored",
		"Windows nodes with an address in the EndpointSlices of the Service windows-exporter.")
	NodesConfiguration = newGauges("wmco_nodes_configuration",
		"Windows nodes by the status of their condition WindowsConfiguration.",
		Label{"status", "`True`, `False`, `Unknown`", 3})
	RepairsReported = newCounters("wmco_agent_repairs_total",
		"Drift repairs reported by the agent of a node.", nodeLabel)
	NodesWithoutInstance = newGauge("wmco_nodes_without_instance",
		"Windows nodes that the operator has configured and that have no WindowsInstance, so that their hosts are not repaired.")
)

// Metrics of changes of nodes in service.
var (
	NodesDisrupted = newGauge("wmco_nodes_disrupted",
		"Windows nodes being disrupted, and deleted Machines without a replacement.")
	DisruptionsStarted = newCounters("wmco_disruptions_total",
		"Disruptions of Windows nodes started by the operator, by cause.", causeLabel)
	DisruptionsFailed = newCounters("wmco_disruptions_failed_total",
		"Windows nodes that were not Ready again before the failure deadline of a disruption, by cause.", causeLabel)
	NodesOutdated = newGauge("wmco_nodes_outdated",
		"Windows nodes in service that were not configured by this version of the operator.")
	UpgradeStopped = newStateGauge("wmco_disruptions_stopped",
		"1 while changes of Windows nodes are stopped until an administrator acts, 0 otherwise; the label reason is the cause.")
	MachinesReplaced = newCounters("wmco_machines_replaced_total",
		"Machines that the operator deleted for replacement by their MachineSets, by cause.",
		Label{"cause", "`key`, `version`", 2})
	MachinesOutdated = newGauge("wmco_machines_outdated",
		"Machines that wait for a replacement, or for a change of their hosts in place.")
)

// Values of the label of Attempts.
const (
	Done    = "done"
	Waiting = "waiting"
	Failed  = "failed"
)

// Values of the label of FilesSent.
const (
	FullFile = "file"
	Patch    = "patch"
)
