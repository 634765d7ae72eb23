package main

import (
	"context"
	"net"
	"path/filepath"

	"github.com/windows-machine-config/wmco/lab/monitoring"
)

// operatorMetrics is the address of the operator's metrics inside the lab's network.
const operatorMetrics = apiAddress + ":8443"

// prometheus is the cluster's monitoring, which runs only with --monitoring.
type prometheus struct {
	*monitoring.Monitoring
	listener *net.TCPListener // for users of Prometheus
}

// startMonitoring starts Prometheus and returns the operator flags for serving metrics to Prometheus.
func (d *demo) startMonitoring(ctx context.Context) (operatorFlags []string, err error) {
	if !d.monitoring {
		return nil, nil
	}
	certificates := filepath.Join(d.dir, "metrics-tls")
	if err := monitoring.OperatorTarget(ctx, d.env, operatorMetrics, certificates); err != nil {
		return nil, err
	}
	d.prometheus.Monitoring, err = monitoring.Start(ctx, d.env, monitoring.Options{Programs: d.programs.monitoring,
		Dir: filepath.Join(d.dir, "prometheus"), Listener: d.prometheus.listener})
	if err != nil {
		return nil, err
	}
	d.output.printStep("Prometheus scrapes the targets of the ServiceMonitors; dashboard, alerts and targets: %s", d.prometheus.URL)
	return []string{"--metrics-bind-address=" + operatorMetrics, "--metrics-cert-dir=" + certificates}, nil
}

// doneChannel returns a channel that is closed when Prometheus has ended; nil without Prometheus.
func (p *prometheus) doneChannel() <-chan struct{} {
	if p.Monitoring == nil {
		return nil
	}
	return p.Done()
}

func (p *prometheus) close() error {
	if p.Monitoring != nil {
		p.Stop()
	}
	if p.listener == nil {
		return nil
	}
	return p.listener.Close()
}

func (p *prometheus) suggestedCommands() []suggestedCommand {
	if p.Monitoring == nil {
		return nil
	}
	return []suggestedCommand{
		{"xdg-open " + p.URL, "the dashboard: CPU, memory and file systems of each node"},
		{"curl '" + p.URL + "api/v1/alerts'", "firing alerts"},
		{"curl '" + p.URL + "api/v1/targets?state=active'", "targets of Prometheus, with the result of the last scrape"},
	}
}
