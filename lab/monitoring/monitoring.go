// Package monitoring gives a lab the monitoring of an OpenShift cluster: the identity and the files that the
// cluster-monitoring-operator gives to Prometheus, and two processes: lab-prometheus-operator, of the module
// lab/prometheusoperator, makes the configuration, and lab-prometheus, of the module lab/prometheus, is the real
// Prometheus. It makes nothing that is the product's.
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
	"github.com/windows-machine-config/wmco/lab/rig"
)

// Programs are those that run, as hack/build names them.
var Programs = [...]string{"lab-prometheus", "lab-prometheus-operator"}

const (
	// namespace and account belong to OpenShift's Prometheus.
	namespace = "openshift-monitoring"
	account   = "prometheus-k8s"
	// configFile is where the pod of Prometheus has its configuration.
	configFile = "/etc/prometheus/config_out/prometheus.env.yaml"
)

// Options configure the monitoring.
type Options struct {
	// Programs is the folder with the programs.
	Programs string
	// Dir is where all files are. It stays.
	Dir string
	// Listener takes requests of users. Default: a free port of the loopback address.
	Listener *net.TCPListener
	// Interval is how often Prometheus scrapes and evaluates. Zero: as the ServiceMonitors say, and OpenShift does.
	Interval time.Duration
}

// Monitoring is a Prometheus that runs.
type Monitoring struct {
	// URL is where users reach Prometheus' API and the page with the dashboards.
	URL string

	processes []*process.Process
	done      chan struct{}
	ending    sync.Once
	first     *process.Process // that has ended, once done is closed
}

// Start starts the monitoring of a rig, which must have the service CA. It returns once the API is served; targets are
// scraped as soon as the operator has made its objects.
func Start(ctx context.Context, r *rig.Rig, o Options) (*Monitoring, error) {
	m := &Monitoring{done: make(chan struct{})}
	if err := m.start(ctx, r, o); err != nil {
		m.Stop()
		return nil, fmt.Errorf("start the cluster's monitoring: %w", err)
	}
	return m, nil
}

func (m *Monitoring) start(ctx context.Context, r *rig.Rig, o Options) (err error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return err
	}
	in := func(name string) string { return filepath.Join(o.Dir, name) }
	if err := prepare(ctx, r, in("root")); err != nil {
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

// run starts a program.
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

// Done is closed when one of the processes has ended.
func (m *Monitoring) Done() <-chan struct{} { return m.done }

// Failure says which process has ended, and how, when Done is closed.
func (m *Monitoring) Failure() error { return m.first.Failure() }

// Logs are the files with what the processes write.
func (m *Monitoring) Logs() (paths []string) {
	for _, p := range m.processes {
		paths = append(paths, p.Log())
	}
	return paths
}

// Stop ends the processes.
func (m *Monitoring) Stop() {
	for _, p := range m.processes {
		p.Kill() // nobody reads the samples again
	}
}
