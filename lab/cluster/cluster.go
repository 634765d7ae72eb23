// Package cluster runs the lab's control plane as a separate process, for the duration of a test or of the
// demo.
//
// The process always ends with its parent, and all files are in one directory. It is a real Kubernetes control
// plane: RBAC, the node authorizer and NodeRestriction are enabled, and no certificate signing request is
// approved automatically.
package cluster

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

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-machine-config/wmco/lab/process"
)

// Profile selects the objects that are installed in the cluster.
type Profile string

const (
	// Plain is Kubernetes without additions.
	Plain Profile = "plain"
	// OpenShift adds the definitions and objects of an OpenShift cluster, and approves client certificate
	// renewals of nodes, as OpenShift does.
	OpenShift Profile = "openshift"
)

// Options configure a cluster. The zero value is a plain cluster.
type Options struct {
	// Dir contains all data. The directory is kept, and a later cluster in the same directory has the same
	// objects. "" is a temporary directory, which Stop removes.
	Dir string
	// Profile defaults to Plain.
	Profile Profile
	// Platform is the platform of an OpenShift cluster: None (when empty), AWS, Azure, GCP, Nutanix or VSphere.
	Platform string
	// Domain is the name and base domain of an OpenShift cluster; lab.example.com when empty.
	Domain string
	// APIIntURL is the URL of the API server for nodes; https://api-int.<domain> when empty. The port of the
	// API server is added if the URL has no port.
	APIIntURL string
	// Listen is the listening address of the API server; a free port on loopback when empty.
	Listen string
	// Listener is an additional listener of the API server. It may belong to another network namespace, so that
	// the namespace reaches the API server. The caller closes the listener.
	Listener *net.TCPListener
	// Audit makes the API server write a line for each request to Cluster.AuditLog.
	Audit bool
	// ExternalSigner disables the signer of the control plane. Approved certificate signing requests are signed
	// by another client with CSRSigner.
	ExternalSigner bool
	// NoRenewalApproval disables the approval of client certificate renewals, which the profile OpenShift
	// otherwise enables.
	NoRenewalApproval bool
	// NodeGracePeriod is the time without a heartbeat after which a node becomes unreachable; the default of
	// Kubernetes when 0. Tests with nodes without a kubelet need more.
	NodeGracePeriod time.Duration
	// BootTimeout is the timeout of the start; 2 minutes when 0.
	BootTimeout time.Duration
}

// Cluster is a running control plane.
type Cluster struct {
	// Config has all rights and no rate limit. Callers must copy it before changes.
	Config *rest.Config
	// Kubeconfig is a file with the same rights.
	Kubeconfig string
	// ExternalKubeconfig is a file with the same rights and the address of Options.Listener, "" without a
	// listener.
	ExternalKubeconfig string
	// Dir contains all data; AuditLog is "" without Options.Audit.
	Dir, AuditLog string

	binary  string
	options Options
	cleanup func() error
	done    chan struct{}
	stop    sync.Once
	stopErr error

	lifecycleMu sync.Mutex // held while the process is started or stopped
	mu          sync.Mutex // guards the fields below
	process     *process.Process
	restarting  bool
}

const defaultBootTimeout = 2 * time.Minute

// Start starts a control plane and returns when it is ready, after about 4 seconds. A boot error ends with the
// last output of the process.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	binary, err := findBinary()
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: o.Dir, binary: binary, options: o, cleanup: func() error { return nil }, done: make(chan struct{})}
	if c.Dir == "" {
		if c.Dir, err = os.MkdirTemp("", "lab-controlplane-"); err != nil {
			return nil, fmt.Errorf("make a directory for the control plane: %w", err)
		}
		c.cleanup = func() error { return os.RemoveAll(c.Dir) }
	}
	if err := c.bootProcess(ctx, o); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	c.Config.QPS = -1
	return c, nil
}

func (c *Cluster) bootProcess(ctx context.Context, o Options) error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of the control plane: %w", err)
	}
	ready := c.filePath("ready")
	if err := os.Remove(ready); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the ready file of an earlier start: %w", err)
	}
	args, files, err := c.buildArguments(o, ready)
	if err != nil {
		return err
	}
	defer closeAll(files) // the process has its own copies
	command := exec.Command(c.binary, args...)
	// Less frequent garbage collection saves a twelfth of the control plane's CPU time, which is most of the
	// cost of a test, in exchange for 250 MB.
	command.Env, command.ExtraFiles = append(os.Environ(), "GOGC=400"), files
	p, err := process.Start("the control plane", command, c.filePath("control-plane.log"))
	if err != nil {
		return err
	}
	c.setProcess(p)
	limit := o.BootTimeout
	if limit == 0 {
		limit = defaultBootTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not ready after %s", limit))
	defer cancel()
	return p.WaitFor(ctx, func() (bool, error) {
		_, err := os.Stat(ready)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return true, err
	})
}

// setProcess sets the current process. The end of the process ends the control plane unless a restart is in
// progress.
func (c *Cluster) setProcess(p *process.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.process = p
	go func() {
		<-p.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.process == p && !c.restarting {
			close(c.done)
		}
	}()
}

// buildArguments returns the flags of the process and the inherited files.
func (c *Cluster) buildArguments(o Options, ready string) ([]string, []*os.File, error) {
	c.Kubeconfig = c.filePath("admin.kubeconfig")
	args := []string{
		"--dir=" + c.Dir,
		"--kubeconfig=" + c.Kubeconfig,
		"--ready-file=" + ready,
		fmt.Sprintf("--parent=%d", os.Getpid()),
	}
	if o.Audit {
		c.AuditLog = c.filePath("audit.log")
	}
	for _, flag := range []struct{ name, value string }{
		{"profile", string(o.Profile)},
		{"platform", o.Platform},
		{"domain", o.Domain},
		{"api-int-url", o.APIIntURL},
		{"listen", o.Listen},
		{"audit-log", c.AuditLog},
	} {
		if flag.value != "" {
			args = append(args, "--"+flag.name+"="+flag.value)
		}
	}
	for name, set := range map[string]bool{"external-signer": o.ExternalSigner,
		"no-renewal-approval": o.NoRenewalApproval} {
		if set {
			args = append(args, "--"+name)
		}
	}
	if o.NodeGracePeriod > 0 {
		args = append(args, "--node-grace-period="+o.NodeGracePeriod.String())
	}
	if o.Listener == nil {
		return args, nil, nil
	}
	file, err := o.Listener.File()
	if err != nil {
		return nil, nil, fmt.Errorf("hand the listener %s to the control plane: %w", o.Listener.Addr(), err)
	}
	c.ExternalKubeconfig = c.filePath("external.kubeconfig")
	// The first inherited file is number 3, after the standard three.
	return append(args, "--listen-fd=3", "--listen-fd-kubeconfig="+c.ExternalKubeconfig), []*os.File{file}, nil
}

// PID returns the process id of the control plane.
func (c *Cluster) PID() int { return c.currentProcess().PID() }

// currentProcess returns the current process; nil before the first start.
func (c *Cluster) currentProcess() *process.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process
}

// Done returns a channel that is closed when the process has ended, which is a failure without Stop. A restart
// does not close the channel.
func (c *Cluster) Done() <-chan struct{} { return c.done }

// Stop kills the control plane, waits for its end, and removes a temporary directory. Further calls do nothing.
func (c *Cluster) Stop() error {
	c.stop.Do(func() {
		c.lifecycleMu.Lock()
		defer c.lifecycleMu.Unlock()
		if p := c.currentProcess(); p != nil {
			p.Kill()
		}
		if err := c.cleanup(); err != nil {
			c.stopErr = fmt.Errorf("remove the directory of the control plane: %w", err)
		}
	})
	return c.stopErr
}

func (c *Cluster) filePath(name string) string { return filepath.Join(c.Dir, name) }

func closeAll(files []*os.File) {
	for _, file := range files {
		_ = file.Close()
	}
}
