package monitoring

import (
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

const alertGroup = "windows-machine-config-operator.alerts"

// severity is the same for all alerts: workloads keep running, so no alert needs an immediate response.
const severity = "warning"

// runbooks is the URL of the document with one paragraph per alert.
const runbooks = "https://github.com/windows-machine-config/wmco/blob/main/docs/conditions.md#"

// Jobs of the metrics: the values of the label name of the Services.
const (
	exporterJob = Name
	operatorJob = v1alpha1.OperatorName
)

// Alert is an alerting rule for Prometheus.
type Alert struct {
	Name, Expr string
	// For is the duration of a true expression before the alert fires; empty for no delay.
	For string
	// Summary and Description are annotations; Prometheus expands their templates.
	Summary, Description string
}

// Alerts returns all alerts.
func Alerts() []Alert { return slices.Concat(changeAlerts(), hostAlerts()) }

// changeAlerts returns the alerts about hosts, changes and certificates that wait.
func changeAlerts() []Alert {
	return []Alert{
		{
			// The metric contains the time, because a change of the reason starts another series.
			Name:    "WindowsInstanceNotReady",
			Expr:    `time() - wmco_instance_not_ready_since_timestamp_seconds{reason!~"Paused|DisruptionsPaused"} > 3600`,
			For:     "5m",
			Summary: "A Windows host has not been a Ready node for more than an hour.",
			Description: "WindowsInstance {{ $labels.name }} has not been Ready for {{ $value | humanizeDuration }}, with the " +
				"reason {{ $labels.reason }}. See status.nextAction of the WindowsInstance.",
		}, {
			Name:    "WindowsUpgradeStopped",
			Expr:    `wmco_disruptions_stopped{reason!="CanaryFailed"} == 1`,
			For:     "5m",
			Summary: "Changes of Windows nodes are stopped until an administrator acts.",
			Description: "The operator does not change Windows nodes, with the reason {{ $labels.reason }}. " +
				"The condition Stopped of WindowsDisruptionPolicy cluster names the failed node.",
		}, {
			Name:    "WindowsCanaryFailed",
			Expr:    `wmco_disruptions_stopped{reason="CanaryFailed"} == 1`,
			For:     "5m",
			Summary: "The first Windows node with a new version or new settings has failed.",
			Description: "No other Windows node is changed. The condition Stopped of WindowsDisruptionPolicy cluster " +
				"names the node.",
		}, {
			// Half of the time between renewal and expiry has passed, independent of the validity of the certificate.
			Name:    "WindowsServiceCertificateExpiring",
			Expr:    `(wmco_certificate_renewal_timestamp_seconds + wmco_certificate_expiry_timestamp_seconds) / 2 < time()`,
			For:     "15m",
			Summary: "The operator has not renewed a certificate of a Windows node.",
			Description: "The certificate of service {{ $labels.certificate }} on the host of WindowsInstance " +
				"{{ $labels.name }} is overdue for renewal. When it expires, the service loses its access to the API " +
				"server.",
		}, {
			// A kubelet renews its certificate when 10 to 30 percent of the validity remains, which is one day
			// at least.
			Name:    "WindowsKubeletCertificateExpiring",
			Expr:    `kubelet_certificate_manager_client_ttl_seconds < 7200 and on (node) wmco_instance_info{node!=""}`,
			For:     "15m",
			Summary: "The kubelet of a Windows node has not renewed its certificate.",
			Description: "The client certificate of the kubelet on Node {{ $labels.node }} expires in " +
				"{{ $value | humanizeDuration }}. Then the node becomes NotReady, and the operator issues a new certificate " +
				"over SSH.",
		},
	}
}

// hostAlerts returns the alerts about hosts in service and about the operator itself.
func hostAlerts() []Alert {
	return []Alert{
		{
			Name:    "WindowsHostDriftsRepeatedly",
			Expr:    `increase(wmco_agent_repairs_total[1h]) > 4`,
			Summary: "The agent of a Windows node repairs its host repeatedly.",
			Description: "The agent of Node {{ $labels.node }} has repaired its host {{ $value | humanize }} times within an " +
				"hour. Another program on the host changes the configuration of the node: see the events DriftRepaired.",
		}, {
			// By then the operator has checked the host, and has started the service of the agent if it was not
			// running.
			Name:    "WindowsAgentSilent",
			Expr:    `wmco_nodes_configuration{status="Unknown"} > 0`,
			For:     "30m",
			Summary: "The agent on a Windows node does not maintain its host.",
			Description: "The agents of {{ $value }} Windows nodes have written no condition WindowsConfiguration for more than " +
				"15 minutes, and the operator's check of the hosts did not help. Changed services and files are not repaired there.",
		}, {
			Name:    "WindowsExporterDown",
			Expr:    `up{job="` + exporterJob + `"} == 0`,
			For:     "15m",
			Summary: "Prometheus cannot scrape a Windows node.",
			Description: "Prometheus gets no metrics from Node {{ $labels.instance }}. The node is off, or the service " +
				"windows_exporter does not run, or its port 9182 is closed, or its certificate is not the service CA's.",
		}, {
			Name:    "WindowsHostKeyChanged",
			Expr:    `wmco_instance_status{reason="HostKeyChanged"} == 1`,
			Summary: "A Windows host presents a different SSH host key than before.",
			Description: "The host of WindowsInstance {{ $labels.name }} was reinstalled, or another machine answers at its " +
				"address. The operator does not log in to it until an administrator accepts the new key.",
		}, {
			// Without Windows nodes in service, nothing waits for the operator.
			Name:    "WindowsMachineConfigOperatorDown",
			Expr:    `absent(up{job="` + operatorJob + `"} == 1) and on () (count(up{job="` + exporterJob + `"}) > 0)`,
			For:     "15m",
			Summary: "The Windows Machine Config Operator does not run.",
			Description: "There are Windows nodes, and Prometheus gets no metrics from the operator. The nodes stay in " +
				"service; new hosts are not configured, nodes are not repaired, and certificates are not approved.",
		},
	}
}

// alertRules returns the alerts in the format of a PrometheusRule.
func alertRules(namespace string) (rules []any) {
	for _, a := range Alerts() {
		rule := map[string]any{
			"alert": a.Name, "expr": a.Expr,
			"labels": map[string]any{"severity": severity, "namespace": namespace},
			"annotations": map[string]any{"summary": a.Summary, "description": a.Description,
				"runbook_url": runbooks + strings.ToLower(a.Name)},
		}
		if a.For != "" {
			rule["for"] = a.For
		}
		rules = append(rules, rule)
	}
	return rules
}
