// Package cluster runs the lab's control plane, a process of its own, for the time of a test or
// of the demo.
//
// The process always ends with the one that started it, and its files are in one directory. It is a real Kubernetes
// control plane: RBAC, the node authorizer and NodeRestriction are on, and no certificate signing request is approved
// by itself.
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

// Profile names the objects that are installed in the cluster.
type Profile string

const (
	// Plain is Kubernetes and nothing else.
	Plain Profile = "plain"
	// OpenShift adds the definitions and objects of an OpenShift cluster, and lets nodes renew
	// their own client certificates, as OpenShift does.
	OpenShift Profile = "openshift"
)

// Options configure a cluster. The zero value is a plain one.
type Options struct {
	// Dir holds all data. It is kept, and a cluster started in it again has the objects it had.
	// "" is a temporary one, which Stop removes.
	Dir string
	// Profile is Plain when empty.
	Profile Profile
	// Platform is the platform of an OpenShift cluster: None (when empty), AWS, Azure, GCP, Nutanix or VSphere.
	Platform string
	// Domain is the name and base domain of an OpenShift cluster; lab.example.com when empty.
	Domain string
	// APIIntURL is where nodes reach the API server; https://api-int.<domain> when empty. The
	// port of the API server is added when it has none.
	APIIntURL string
	// Listen is the address for the API server to listen on; a free port on loopback when empty.
	Listen string
	// Listener is served as well, when it is not nil. It may belong to another network
	// namespace, whose processes then reach the API server through it. It stays the caller's to close.
	Listener *net.TCPListener
	// Audit makes the API server write a line for each request to Cluster.AuditLog.
	Audit bool
	// ExternalSigner leaves certificate signing requests that were approved to somebody else to sign, with CSRSigner.
	ExternalSigner bool
	// NoRenewalApproval has the control plane approve no renewals of nodes. With the profile OpenShift it does so
	// otherwise.
	NoRenewalApproval bool
	// NodeGracePeriod is how long a node may be silent until the cluster takes it for unreachable; Kubernetes' default
	// when 0. Tests whose nodes are nobody's need more.
	NodeGracePeriod time.Duration
	// BootLimit is how long the start may take; 2 minutes when 0.
	BootLimit time.Duration
}

// Cluster is a running control plane.
type Cluster struct {
	// Config has all rights, and no limit of requests. A caller that changes it copies it before.
	Config *rest.Config
	// Kubeconfig is a file with the same rights.
	Kubeconfig string
	// ExternalKubeconfig is a file with the same rights for the address of Options.Listener, "" without one.
	ExternalKubeconfig string
	// Dir holds all data; AuditLog is "" without Options.Audit.
	Dir, AuditLog string

	binary  string
	options Options
	cleanup func() error
	done    chan struct{}
	stop    sync.Once
	stopErr error

	life       sync.Mutex // held while the process is started or ended
	mu         sync.Mutex // guards the rest
	process    *process.Process
	restarting bool
}

const defaultBootLimit = 2 * time.Minute

// Start starts a control plane and returns when it is ready to be used, about 4 seconds later.
// An error of the boot ends with what the process wrote last.
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
	if err := c.boot(ctx, o); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	c.Config.QPS = -1
	return c, nil
}

func (c *Cluster) boot(ctx context.Context, o Options) error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of the control plane: %w", err)
	}
	ready := c.path("ready")
	if err := os.Remove(ready); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the ready file of an earlier start: %w", err)
	}
	args, files, err := c.arguments(o, ready)
	if err != nil {
		return err
	}
	defer closeAll(files) // the process has its own
	command := exec.Command(c.binary, args...)
	// Collecting garbage seldom saves a twelfth of its work, which is most of what a test of ours costs, for 250 MB.
	command.Env, command.ExtraFiles = append(os.Environ(), "GOGC=400"), files
	p, err := process.Start("the control plane", command, c.path("control-plane.log"))
	if err != nil {
		return err
	}
	c.follow(p)
	limit := o.BootLimit
	if limit == 0 {
		limit = defaultBootLimit
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

// follow makes p the process. Its end is the end of the control plane unless it is restarted.
func (c *Cluster) follow(p *process.Process) {
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

// arguments returns the flags of the process, and the files it inherits.
func (c *Cluster) arguments(o Options, ready string) ([]string, []*os.File, error) {
	c.Kubeconfig = c.path("admin.kubeconfig")
	args := []string{
		"--dir=" + c.Dir,
		"--kubeconfig=" + c.Kubeconfig,
		"--ready-file=" + ready,
		fmt.Sprintf("--parent=%d", os.Getpid()),
	}
	if o.Audit {
		c.AuditLog = c.path("audit.log")
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
	c.ExternalKubeconfig = c.path("external.kubeconfig")
	// The first inherited file is number 3, after the standard three.
	return append(args, "--listen-fd=3", "--listen-fd-kubeconfig="+c.ExternalKubeconfig), []*os.File{file}, nil
}

// PID returns the process id of the control plane.
func (c *Cluster) PID() int { return c.current().PID() }

// current returns the process that there is now; nil before the first.
func (c *Cluster) current() *process.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process
}

// Done is closed when the process has ended, which without Stop is a failure. A restart is not an end.
func (c *Cluster) Done() <-chan struct{} { return c.done }

// Stop kills the control plane, waits for its end, and removes the directory if it was a
// temporary one. Further calls do nothing.
func (c *Cluster) Stop() error {
	c.stop.Do(func() {
		c.life.Lock()
		defer c.life.Unlock()
		if p := c.current(); p != nil {
			p.Kill()
		}
		if err := c.cleanup(); err != nil {
			c.stopErr = fmt.Errorf("remove the directory of the control plane: %w", err)
		}
	})
	return c.stopErr
}

func (c *Cluster) path(name string) string { return filepath.Join(c.Dir, name) }

func closeAll(files []*os.File) {
	for _, file := range files {
		_ = file.Close()
	}
}
