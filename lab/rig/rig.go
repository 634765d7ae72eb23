// Package rig puts a lab together for tests, the demo and benchmarks: a control plane, the other parts of an OpenShift
// cluster, the payload, and simulated Windows hosts with their SSH servers. It installs the operator as an
// administrator does, and runs it with the rights that deploy/ gives to its ServiceAccount, and no others.
package rig

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
	"github.com/windows-machine-config/wmco/lab/machineapi"
	"github.com/windows-machine-config/wmco/lab/openshift"
	"github.com/windows-machine-config/wmco/lab/virtualtime"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// Namespace is the operator's namespace by default.
const Namespace = "openshift-windows-machine-config-operator"

// Options configure a rig. The zero value is a control plane of its own and no hosts.
type Options struct {
	// Hosts are booted at the start. See Hosts for a number of usual ones.
	Hosts []HostOptions
	// Cluster is used instead of a control plane of the rig's own. It must have the profile openshift. Close removes what
	// it made there, but for what each rig installs. Only one rig may use it at a time.
	Cluster *cluster.Cluster
	// ControlPlane are options of the rig's own control plane; its profile is openshift in any case.
	ControlPlane cluster.Options
	// Network is where the hosts are. Default: a winhost.Network.
	Network Network
	// LinuxNodes is how many Linux control-plane nodes the cluster appears to have. With MachineAPI they have Machines.
	LinuxNodes int
	// MachineAPI runs the Machine API, with a cloud that makes simulated Windows hosts. The platform must be one with
	// Machines. The cluster has its MachineSet of Linux workers then.
	MachineAPI bool
	// BareNodes lets the Machine API put no labels and taints on Nodes: what a Node has of its Machine, the operator has
	// given it.
	BareNodes bool
	// CloudWorks delays the cloud controller, on Azure cloud-node-manager on the hosts, until it is closed. Default: both
	// work at once.
	CloudWorks <-chan struct{}
	// ServiceCA makes serving certificates for Services that ask for one.
	ServiceCA bool
	// VM is how the cloud's virtual machines behave.
	VM VMOptions
	// Clock is the clock of hosts and operator. Default: the real clock. The programs of the payload show this time too, with
	// timers that follow the real clock. If the clock stands still for 40 s, the control plane takes nodes for dead.
	Clock clock.WithTicker
	// VirtualTime is the clock of hosts, operator and programs instead. The rig lets its time pass whenever neither this
	// process nor the control plane works. Only one rig of a process may have one.
	VirtualTime *virtualtime.Clock
	// Rand gives keys. It must be safe for concurrent use. Default: crypto/rand.
	Rand io.Reader
	// Dir holds what the rig writes, and stays. Default: a temporary one, which Close removes.
	Dir string
	// PayloadDir is a payload made before, by another rig perhaps. Default: one is made.
	PayloadDir string
	// Agent is the agent built for Windows. Default: build/wicd.exe of the repository.
	Agent string
	// Version is the operator's. Default: 1.0.0-lab.
	Version string
	// Link is the line that all SSH connections go over. Default: none.
	Link *winhost.Link
	// Log takes what the operator logs when it runs in this process. Default: nothing.
	Log logr.Logger
}

// Rig is a running lab.
type Rig struct {
	// Client has all rights and reads the API server, not a cache.
	Client client.WithWatch
	// Config is the client's.
	Config *rest.Config

	options    Options
	cluster    *cluster.Cluster
	apiAddress string
	strict     client.Client
	cache      cache.Cache
	network    Network
	dir        string
	payloadDir string
	platform   string
	cloud      *cloud
	programs   fake.ProgramTable
	contents   *fake.ContentStore
	spoken     sync.Map // *fake.Machine to words, of hostile hosts

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
	templateKey    sshkey.Key // what images hold that do
}

// New starts a lab. Close ends it; ctx only limits the start.
func New(ctx context.Context, options Options) (*Rig, error) {
	r := &Rig{options: options.withDefaults(), contents: fake.NewContentStore(), namespace: Namespace}
	log.SetLogger(r.options.Log) // The libraries have but one; the first rig's stays.
	r.network, r.dir, r.cloud = r.options.Network, r.options.Dir, newCloud(r)
	r.running, r.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	for _, start := range []func(context.Context) error{
		r.makeDir, r.makeKey, r.makePayload, r.startCluster, r.startTime, r.makeClients, r.readPlatform,
		r.startStandIns, r.startHosts,
		r.makeControlPlaneMachines, r.startMachineAPI,
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

func (r *Rig) makeDir(context.Context) (err error) {
	if r.dir == "" {
		if r.dir, err = os.MkdirTemp("", "wmco-rig-"); err != nil {
			return fmt.Errorf("make the lab's directory: %w", err)
		}
		r.onClose(r.removeDir)
	}
	return nil
}

func (r *Rig) startCluster(ctx context.Context) (err error) {
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

func (r *Rig) makeClients(context.Context) (err error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), machinev1.Install(scheme),
		configv1.Install(scheme),
		operatorv1.Install(scheme), machineconfigv1.Install(scheme)); err != nil {
		return err
	}
	config := rest.CopyConfig(r.Config)
	config.QPS = -1 // the lab is not to wait for itself
	if r.Client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	r.strict = client.WithFieldValidation(r.Client, metav1.FieldValidationStrict)
	if r.cache, err = cache.New(config, cache.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make a cache: %w", err)
	}
	r.group.Go(func() { _ = r.cache.Start(r.running) }) // ends with the rig
	return nil
}

// startStandIns starts what an OpenShift cluster does besides Kubernetes.
func (r *Rig) startStandIns(context.Context) error {
	options := openshift.Options{Platform: r.platform, ControlPlaneNodes: r.options.LinuxNodes,
		ServiceCA: r.options.ServiceCA, CloudWorks: r.options.CloudWorks, GuestNames: r.guestNames}
	if r.options.MachineAPI {
		options.ControlPlaneNodes = 0 // Their Machines bring them.
	}
	r.group.Go(func() {
		err := openshift.Run(r.running, r.Config, options)
		if err != nil {
			r.stop(err)
		}
	})
	return nil
}

// startMachineAPI starts the Machine API in front of the lab's cloud.
func (r *Rig) startMachineAPI(context.Context) (err error) {
	if !r.options.MachineAPI {
		return nil
	}
	config := rest.CopyConfig(r.Config)
	config.QPS = -1
	if r.cloud.clients, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("make a client for Linux machines: %w", err)
	}
	options := machineapi.Options{Cloud: r.cloud, Platform: r.platform, Clock: r.options.Clock,
		BareNodes: r.options.BareNodes}
	if r.options.Log.GetSink() != nil {
		options.Logger = slog.New(logr.ToSlogHandler(r.options.Log.WithName("machine-api")))
	}
	r.group.Go(func() {
		if err := machineapi.Run(r.running, r.Config, options); err != nil {
			r.stop(err)
		}
	})
	return nil
}

// startHosts boots all hosts at once: fifty of them should not take fifty times as long.
func (r *Rig) startHosts(ctx context.Context) error {
	r.programs = r.programTable()
	errs := make([]error, len(r.options.Hosts))
	var group sync.WaitGroup
	for i, options := range r.options.Hosts {
		h, err := r.enter(options)
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
func (r *Rig) Cluster() *cluster.Cluster { return r.cluster }

// Network is where the hosts are.
func (r *Rig) Network() Network { return r.network }

// Dir returns the folder of the rig's files.
func (r *Rig) Dir() string { return r.dir }

// PayloadDir returns the payload that is brought to hosts.
func (r *Rig) PayloadDir() string { return r.payloadDir }

// Namespace returns the operator's.
func (r *Rig) Namespace() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.namespace
}

func (r *Rig) domain() string { return cmp.Or(r.options.ControlPlane.Domain, "lab.example.com") }

func (r *Rig) onClose(run func() error) { r.cleanup = append(r.cleanup, run) }
