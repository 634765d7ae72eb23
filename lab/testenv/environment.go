// Package testenv assembles a lab for tests, the demo and benchmarks: a control plane, the other parts of an OpenShift
// cluster, the payload, and simulated Windows hosts with SSH servers. The package installs the operator like an
// administrator, and runs it with exactly the rights that deploy/ grants to the ServiceAccount.
package testenv

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	machinev1 "github.com/openshift/api/machine/v1beta1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/sshkey"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/fakemachineapi"
	"github.com/windows-machine-config/wmco/lab/fakeopenshift"
	"github.com/windows-machine-config/wmco/lab/virtualtime"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// Namespace is the default namespace of the operator.
const Namespace = "openshift-windows-machine-config-operator"

// Options configure an environment. The zero value means a separate control plane and no hosts.
type Options struct {
	// Hosts are booted at the start. See Hosts for a number of standard hosts.
	Hosts []HostOptions
	// Cluster is a shared control plane with the profile openshift, used instead of a separate one. Close deletes the
	// environment's objects, except for the objects that each environment installs. Only one environment may use the
	// cluster at a time.
	Cluster *cluster.Cluster
	// ControlPlane are options of the environment's own control plane; its profile is always openshift.
	ControlPlane cluster.Options
	// Network is the network of the hosts. Default: a winhost.Network.
	Network Network
	// LinuxNodes is the apparent number of Linux control-plane nodes. With MachineAPI they have Machines.
	LinuxNodes int
	// MachineAPI runs the Machine API, with a cloud that creates simulated Windows hosts. The platform must support
	// Machines. The cluster then has a MachineSet of Linux workers.
	MachineAPI bool
	// BareNodes prevents the Machine API from setting labels and taints on Nodes, so that a Node has those of the
	// Machine only from the operator.
	BareNodes bool
	// CloudWorks delays the cloud controller, on Azure cloud-node-manager on the hosts, until the channel is closed.
	// Default: no delay.
	CloudWorks <-chan struct{}
	// ServiceCA issues serving certificates for Services that request one.
	ServiceCA bool
	// VM configures the cloud's virtual machines.
	VM VMOptions
	// Clock is the clock of hosts and operator. Default: the real clock. The programs of the payload show this time
	// too, but their timers follow the real clock. If the clock stops for 40 s, the control plane considers nodes
	// dead.
	Clock clock.WithTicker
	// VirtualTime replaces the clock of hosts, operator and programs. The environment advances the time whenever
	// neither this process nor the control plane works. Only one environment of a process may have virtual time.
	VirtualTime *virtualtime.Clock
	// Rand is the source of keys. It must be safe for concurrent use. Default: crypto/rand.
	Rand io.Reader
	// Dir holds the files of the environment, and is kept. Default: a temporary directory, which Close removes.
	Dir string
	// PayloadDir is an existing payload, for example of another environment. Default: a new payload is generated.
	PayloadDir string
	// Agent is the agent built for Windows. Default: build/wicd.exe of the repository.
	Agent string
	// Version is the operator's version. Default: 1.0.0-lab.
	Version string
	// Link is the line of all SSH connections. Default: none.
	Link *winhost.Link
	// Log receives the log of an operator in this process. Default: discarded.
	Log logr.Logger
}

// Environment is a running lab.
type Environment struct {
	// Client has all rights and reads from the API server, not from a cache.
	Client client.WithWatch
	// Config is the client's configuration.
	Config *rest.Config

	options       Options
	cluster       *cluster.Cluster
	apiAddress    string
	strict        client.Client
	cache         cache.Cache
	network       Network
	dir           string
	payloadDir    string
	platform      string
	cloud         *cloud
	programs      fake.ProgramTable
	contents      *fake.ContentStore
	outputFilters sync.Map // *fake.Machine to words, of hostile hosts

	running context.Context
	stop    context.CancelCauseFunc
	group   sync.WaitGroup
	cleanup []func() error // in reverse order

	mu             sync.Mutex
	hosts          []*Host
	namespace      string
	operatorConfig *rest.Config
	privateKey     []byte
	key            sshkey.Key // of privateKey
	templateKey    sshkey.Key // the key in images that contain one
}

// New starts a lab. Close stops it; ctx only limits the start.
func New(ctx context.Context, options Options) (*Environment, error) {
	r := &Environment{options: options.withDefaults(), contents: fake.NewContentStore(), namespace: Namespace}
	log.SetLogger(r.options.Log) // The libraries have a single logger; the first environment's is kept.
	r.network, r.dir, r.cloud = r.options.Network, r.options.Dir, newCloud(r)
	r.running, r.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	for _, start := range []func(context.Context) error{
		r.createDir, r.generateKey, r.generatePayload, r.startCluster, r.startTime, r.createClients, r.readPlatform,
		r.startOpenShift, r.startHosts,
		r.createControlPlaneMachines, r.startMachineAPI,
	} {
		if err := start(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("start the lab: %w", err), r.Close())
		}
	}
	return r, nil
}

func (o Options) withDefaults() Options {
	if o.Network == nil {
		o.Network = winhost.NewNetwork()
	}
	if o.VirtualTime != nil {
		o.Clock = o.VirtualTime
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Log.GetSink() == nil {
		o.Log = logr.Discard()
	}
	o.Version = cmp.Or(o.Version, "1.0.0-lab")
	return o
}

func (r *Environment) createDir(context.Context) (err error) {
	if r.dir == "" {
		if r.dir, err = os.MkdirTemp("", "wmco-testenv-"); err != nil {
			return fmt.Errorf("make the lab's directory: %w", err)
		}
		r.onClose(r.removeDir)
	}
	return nil
}

func (r *Environment) startCluster(ctx context.Context) (err error) {
	r.cluster = r.options.Cluster
	if r.cluster == nil {
		o := r.options.ControlPlane
		o.Profile, o.Dir = cluster.OpenShift, cmp.Or(o.Dir, filepath.Join(r.dir, "control-plane"))
		if r.cluster, err = cluster.Start(ctx, o); err != nil {
			return err
		}
		r.onClose(r.cluster.Stop)
	}
	r.Config = r.cluster.Config
	r.apiAddress = strings.TrimPrefix(r.Config.Host, "https://")
	return nil
}

func (r *Environment) createClients(context.Context) (err error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), machinev1.Install(scheme),
		configv1.Install(scheme),
		operatorv1.Install(scheme), machineconfigv1.Install(scheme)); err != nil {
		return err
	}
	config := rest.CopyConfig(r.Config)
	config.QPS = -1 // no client-side rate limit in the lab
	if r.Client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	r.strict = client.WithFieldValidation(r.Client, metav1.FieldValidationStrict)
	if r.cache, err = cache.New(config, cache.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make a cache: %w", err)
	}
	r.group.Go(func() { _ = r.cache.Start(r.running) }) // ends with the environment
	return nil
}

// startOpenShift starts stand-ins for the OpenShift components beyond Kubernetes.
func (r *Environment) startOpenShift(context.Context) error {
	options := fakeopenshift.Options{Platform: r.platform, ControlPlaneNodes: r.options.LinuxNodes,
		ServiceCA: r.options.ServiceCA, CloudWorks: r.options.CloudWorks, GuestNames: r.guestNames}
	if r.options.MachineAPI {
		options.ControlPlaneNodes = 0 // created with their Machines
	}
	r.group.Go(func() {
		err := fakeopenshift.Run(r.running, r.Config, options)
		if err != nil {
			r.stop(err)
		}
	})
	return nil
}

// startMachineAPI starts the Machine API in front of the lab's cloud.
func (r *Environment) startMachineAPI(context.Context) (err error) {
	if !r.options.MachineAPI {
		return nil
	}
	config := rest.CopyConfig(r.Config)
	config.QPS = -1
	if r.cloud.clients, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("make a client for Linux machines: %w", err)
	}
	options := fakemachineapi.Options{Cloud: r.cloud, Platform: r.platform, Clock: r.options.Clock,
		BareNodes: r.options.BareNodes}
	if r.options.Log.GetSink() != nil {
		options.Logger = slog.New(logr.ToSlogHandler(r.options.Log.WithName("machine-api")))
	}
	r.group.Go(func() {
		if err := fakemachineapi.Run(r.running, r.Config, options); err != nil {
			r.stop(err)
		}
	})
	return nil
}

// startHosts boots all hosts concurrently: fifty hosts should not take fifty times as long.
func (r *Environment) startHosts(ctx context.Context) error {
	r.programs = r.programTable()
	errs := make([]error, len(r.options.Hosts))
	var group sync.WaitGroup
	for i, options := range r.options.Hosts {
		h, err := r.registerHost(options)
		if err != nil {
			errs[i] = err
			continue
		}
		group.Go(func() { errs[i] = r.bootHost(ctx, h) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// Cluster returns the control plane.
func (r *Environment) Cluster() *cluster.Cluster { return r.cluster }

// Network returns the network of the hosts.
func (r *Environment) Network() Network { return r.network }

// Dir returns the directory of the environment's files.
func (r *Environment) Dir() string { return r.dir }

// PayloadDir returns the directory of the payload that the operator copies to hosts.
func (r *Environment) PayloadDir() string { return r.payloadDir }

// Namespace returns the operator's namespace.
func (r *Environment) Namespace() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.namespace
}

func (r *Environment) clusterDomain() string {
	return cmp.Or(r.options.ControlPlane.Domain, "lab.example.com")
}

func (r *Environment) onClose(run func() error) { r.cleanup = append(r.cleanup, run) }
