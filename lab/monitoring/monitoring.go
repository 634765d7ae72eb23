// Package monitoring adds the monitoring of an OpenShift cluster to a lab. It creates the identity and the
// files that the cluster-monitoring-operator provides to Prometheus, and starts two processes:
// lab-prometheus-operator, of the module lab/prometheusoperator, generates the configuration, and
// lab-prometheus, of the module lab/prometheus, is the real Prometheus. The package creates no objects of the
// product.
package monitoring

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/windows-machine-config/wmco/lab/process"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// Programs are the names of the programs, as in hack/build.
var Programs = [...]string{"lab-prometheus", "lab-prometheus-operator"}

const (
	// namespace and account are the namespace and the ServiceAccount of Prometheus in OpenShift.
	namespace = "openshift-monitoring"
	account   = "prometheus-k8s"
	// configFile is the path of the configuration in the pod of Prometheus.
	configFile = "/etc/prometheus/config_out/prometheus.env.yaml"
)

// Options configure the monitoring.
type Options struct {
	// Programs is the directory of the programs.
	Programs string
	// Dir is the directory of all files. It is kept.
	Dir string
	// Listener accepts requests of users. Default: a free port of the loopback address.
	Listener *net.TCPListener
	// Interval is the scrape and evaluation interval of Prometheus. Zero: the intervals of the ServiceMonitors
	// and of OpenShift.
	Interval time.Duration
}

// Monitoring is a running Prometheus.
type Monitoring struct {
	// URL is the URL of the Prometheus API and the page with the dashboards.
	URL string

	processes []*process.Process
	done      chan struct{}
	ending    sync.Once
	first     *process.Process // the process that ended first, once done is closed
}

// Start starts the monitoring of an environment, which must have the service CA. Start returns when the API is
// available. Targets are scraped as soon as the operator has created its objects.
func Start(ctx context.Context, r *testenv.Environment, o Options) (*Monitoring, error) {
	m := &Monitoring{done: make(chan struct{})}
	if err := m.start(ctx, r, o); err != nil {
		m.Stop()
		return nil, fmt.Errorf("start the cluster's monitoring: %w", err)
	}
	return m, nil
}

func (m *Monitoring) start(ctx context.Context, r *testenv.Environment, o Options) (err error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return err
	}
	in := func(name string) string { return filepath.Join(o.Dir, name) }
	if err := prepareMonitoring(ctx, r, in("root")); err != nil {
		return err
	}
	if err := r.Cluster().WriteKubeconfig(in("kubeconfig"), r.Config); err != nil {
		return err
	}
	prometheus := []string{"--kubeconfig=" + in("kubeconfig"), "--config.file=" + filepath.Join(in("root"), configFile),
		"--storage.tsdb.path=" + in("data"), "--url-file=" + in("url")}
	operator := []string{"--kubeconfig=" + in("kubeconfig"), "--root=" + in("root")}
	if o.Interval > 0 {
		prometheus = append(prometheus, "--discovery-interval="+o.Interval.String())
		operator = append(operator, "--interval="+o.Interval.String())
	}
	server, err := m.run(o, Programs[0], prometheus, o.Listener)
	if err != nil {
		return err
	}
	if _, err := m.run(o, Programs[1], operator, nil); err != nil {
		return err
	}
	return server.WaitFor(ctx, func() (bool, error) {
		content, err := os.ReadFile(in("url"))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		m.URL = string(content)
		return m.URL != "", err
	})
}

func (m *Monitoring) run(o Options, name string, args []string, listener *net.TCPListener) (*process.Process, error) {
	command := exec.Command(filepath.Join(o.Programs, name), args...)
	if listener != nil {
		file, err := listener.File()
		if err != nil {
			return nil, fmt.Errorf("hand over the listener %s: %w", listener.Addr(), err)
		}
		defer file.Close()
		command.ExtraFiles = []*os.File{file}
		command.Args = append(command.Args, "--listen-fd=3") // after the standard three
	}
	p, err := process.Start(name, command, filepath.Join(o.Dir, name+".log"))
	if err != nil {
		return nil, fmt.Errorf("%w: run `make build/%s`", err, name)
	}
	m.processes = append(m.processes, p)
	go func() {
		<-p.Done()
		m.ending.Do(func() { m.first = p; close(m.done) })
	}()
	return p, nil
}

// Done returns a channel that is closed when the first process has ended.
func (m *Monitoring) Done() <-chan struct{} { return m.done }

// Failure returns which process has ended and why, after Done is closed.
func (m *Monitoring) Failure() error { return m.first.Failure() }

// Logs returns the paths of the log files of the processes.
func (m *Monitoring) Logs() (paths []string) {
	for _, p := range m.processes {
		paths = append(paths, p.Log())
	}
	return paths
}

// Stop ends the processes.
func (m *Monitoring) Stop() {
	for _, p := range m.processes {
		p.Kill() // the samples are not used again
	}
}
