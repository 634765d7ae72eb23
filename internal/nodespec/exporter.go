package nodespec

import (
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// ServiceExporter is the name of windows_exporter's Windows service.
const ServiceExporter = "windows_exporter"

// Paths of the exporter's certificate.
const (
	tlsDirectory          = Root + `\tls`
	tlsCertsDirectory     = tlsDirectory + `\certs`
	exporterWebConfigFile = tlsDirectory + `\windows-exporter-webconfig.yaml`
	exporterCertFile      = tlsCertsDirectory + `\tls.crt`
	exporterKeyFile       = tlsCertsDirectory + `\tls.key`
	exporterClientCAFile  = tlsCertsDirectory + `\client-ca.crt`
)

// exporterCollectors measure the metrics of Windows nodes in the console's graphs and in the recording rules of the
// cluster's monitoring.
var exporterCollectors = []string{"container", "cpu", "cpu_info", "logical_disk", "memory", "net", "os",
	"service", "system"}

// exporterPort is the port of the metrics endpoint, shared with the firewall rule and the check.
const exporterPort = 9182

// windowsExporterService serves metrics on port 9182, over TLS if the cluster has a serving certificate for metrics.
// For each connection, the exporter reads the web configuration, the certificate and the client authorities again, so
// new files need no restart. Source: prometheus/exporter-toolkit, web/tls_config.go.
func windowsExporterService(in Inputs, p *programs) Service {
	arguments := []string{
		p.executablePath("windows_exporter.exe"), "--collectors.enabled", strings.Join(exporterCollectors, ","), "--log.file",
		LogPath(ServiceExporter),
	}
	if in.Cluster.MetricsServing.isSet() {
		arguments = append(arguments, "--web.config.file", exporterWebConfigFile)
	}
	if in.Debug {
		arguments = append(arguments, "--log.level", "debug")
	}
	return newService(ServiceExporter, arguments)
}

// isSet reports whether the certificate and the key are set.
func (c ServingCertificate) isSet() bool { return c.Certificate != "" && c.Key != "" }

func exporterFiles(in Inputs) []File {
	if !in.Cluster.MetricsServing.isSet() {
		return nil
	}
	// The key comes first, and the configuration after all referenced files.
	files := []File{
		{Path: exporterKeyFile, Secret: in.Cluster.MetricsServing.Key, Access: host.AccessAdministrators},
		newInheritedFile(exporterCertFile, in.Cluster.MetricsServing.Certificate),
	}
	config := []string{
		"tls_server_config:",
		"  cert_file: '" + exporterCertFile + "'",
		"  key_file: '" + exporterKeyFile + "'",
		"  min_version: TLS12",
	}
	if in.Cluster.MetricsServing.ClientCA != "" {
		files = append(files, newInheritedFile(exporterClientCAFile, in.Cluster.MetricsServing.ClientCA))
		config = append(config,
			"  client_auth_type: RequireAndVerifyClientCert",
			"  client_ca_file: '"+exporterClientCAFile+"'",
		)
	}
	return append(files, newInheritedFile(exporterWebConfigFile, strings.Join(append(config, ""), "\n")))
}
