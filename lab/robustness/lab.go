package robustness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr/funcr"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/faultproxy"
	"github.com/windows-machine-config/wmco/lab/secretscan"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// Options are the common options of runs.
type Options struct {
	// Releases are the operator's releases in order; at least as many as a shape has.
	Releases []testenv.Release
	// Timeout is the timeout for reaching the desired state at the end; QuietPeriod is the required silence
	// afterwards.
	Timeout, QuietPeriod time.Duration
	// Progress receives the actions, one line each.
	Progress func(format string, arguments ...any)
}

// lab is a separate control plane with hosts and an operator, for one run.
type lab struct {
	*testenv.Environment
	options Options
	shape   Shape
	proxy   *faultproxy.Proxy
	through func(*operator.Config)
	history *testenv.History
	log     *logbook
	// connections records the connections of operators to hosts, and started counts the operators.
	connections *connections
	started     int
	secrets     secretscan.Secrets

	model     *Model
	entries   map[string]string // additional or replaced entries of windows-instances
	operators []*testenv.Operator
	endings   []ending
	revisions []string               // of the API server's store, before each action
	hosts     map[string]*hostRecord // by computer name
	moved     int
	faultsEnd uint64 // the revision when all faults have ended
}

// hostRecord holds the facts of the harness about a host.
type hostRecord struct {
	Host
	machines []*fake.Machine // all machines of this host, the current one last
	before   fake.Snapshot   // of the current machine, before it was first listed
	// newKey is true if the host has presented a new host key, which the administrator accepts. keyUnknown is true if
	// the old or the new key is not known.
	newKey, keyUnknown bool
	// poweredOff is true if the current machine was powered off. instanceDeleted is true if an administrator has
	// deleted an instance of the host.
	poweredOff, instanceDeleted bool
	cordoned                    types.UID // of the Node that the user has cordoned; "" if none
}

// logbook is a log with concurrent writers.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logbook) appendLine(prefix, arguments string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.WriteString(prefix + " " + arguments + "\n")
}

func (b *logbook) copyText() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.text.Bytes())
}

// verbosity is higher than any level used by libraries.
const verbosity = 10

// failureDeadline is short, so that failures caused by a fault end before the run does.
const failureDeadline = 5 * time.Minute

// newLab boots everything, until the operator runs and the first hosts are listed.
func newLab(ctx context.Context, options Options, shape Shape) (l *lab, stop func() error, err error) {
	fast, stopClock := testenv.FastClock()
	l = &lab{options: options, shape: shape, log: &logbook{}, secrets: secretscan.Secrets{}, model: NewModel(shape),
		connections: &connections{clock: fast, byClientAddress: map[string][]*connected{}},
		entries:     map[string]string{}, hosts: map[string]*hostRecord{}}
	platform := ""
	if shape.Machines > 0 {
		platform = "AWS"
	}
	l.Environment, err = testenv.New(ctx, testenv.Options{
		Hosts: hostOptions(shape), LinuxNodes: 1, Clock: fast,
		ControlPlane: cluster.Options{APIIntURL: "https://127.0.0.1", Audit: true, NodeGracePeriod: 20 * time.Second, Platform: platform},
		MachineAPI:   platform != "",
		PayloadDir:   options.Releases[0].PayloadDirectory, Version: options.Releases[0].Version,
		Log: funcr.New(l.log.appendLine, funcr.Options{LogTimestamp: true, TimestampFormat: "15:04:05.000", Verbosity: verbosity}),
	})
	if err != nil {
		stopClock()
		return nil, nil, err
	}
	stop = func() error {
		if l.history != nil {
			l.history.Stop()
		}
		defer stopClock() // stopping goroutines may wait for the clock
		return l.Close()
	}
	if err := l.setUpCluster(ctx); err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return l, stop, nil
}

func hostOptions(shape Shape) (hosts []testenv.HostOptions) {
	for i, name := range shape.Hosts {
		// By the fast clock: long operations of Windows can be observed in progress.
		o := testenv.HostOptions{Name: name, ShutdownDelay: 2 * time.Second, RebootDuration: 6 * time.Second,
			BootDelay: 3 * time.Second, FeatureDuration: 4 * time.Second}
		if slices.Contains(shape.Named, name) {
			o.DNSName = testenv.DNSName(i + 1)
		}
		hosts = append(hosts, o)
	}
	return hosts
}

func (l *lab) setUpCluster(ctx context.Context) error {
	for _, h := range l.Hosts() {
		l.hosts[h.Options.Name] = &hostRecord{}
		if err := l.recordHost(h); err != nil {
			return err
		}
	}
	if _, err := l.InstallOperator(ctx, ""); err != nil {
		return err
	}
	if err := l.CreateKey(ctx); err != nil {
		return err
	}
	l.secrets.AddKey("the SSH private key", l.PrivateKey())
	var err error
	if l.proxy, l.through, err = l.Proxy(); err != nil {
		return err
	}
	if l.history, err = l.Follow(ctx, followedKinds(l.Namespace())...); err != nil {
		return err
	}
	if err := l.deployWorkload(ctx); err != nil {
		return err
	}
	policy := &v1alpha1.WindowsDisruptionPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace(), Name: v1alpha1.DisruptionPolicyName},
		Spec: v1alpha1.WindowsDisruptionPolicySpec{MaxUnavailable: ptr.To(intstr.FromInt32(1)),
			FailureDeadline: &metav1.Duration{Duration: failureDeadline}},
	}
	if err := l.Client.Create(ctx, policy); err != nil {
		return err
	}
	if err := l.list(ctx); err != nil {
		return err
	}
	if err := l.startOperator(); err != nil || l.shape.Machines == 0 {
		return err
	}
	if err := l.WaitUserData(ctx); err != nil {
		return err
	}
	return l.CreateMachineSet(ctx, machineSet, int32(l.shape.Machines), testenv.MachineSetOptions{})
}

// allHosts returns all current and former hosts.
func (l *lab) allHosts() []*testenv.Host { return append(l.Hosts(), l.MachineHosts()...) }

// recordHost records the current state of a host as the state to restore after a removal.
func (l *lab) recordHost(h *testenv.Host) error {
	key, err := h.HostKey()
	if err != nil {
		return fmt.Errorf("read the host key of %s: %w", h.Options.Name, err)
	}
	record := l.hosts[h.Options.Name]
	record.machines = append(record.machines, h.Machine())
	record.before, record.poweredOff = h.Machine().Snapshot(), false
	record.HostKeys = append(record.HostKeys, ssh.FingerprintSHA256(key))
	record.Addresses = append(record.Addresses, h.Options.Address)
	record.Names = []string{h.NodeName()}
	if h.Options.DNSName != "" {
		record.Names = append(record.Names, h.Options.DNSName)
	}
	return nil
}

// list writes the entries of the model to windows-instances.
func (l *lab) list(ctx context.Context) error {
	entries := map[string]string{}
	for _, name := range l.model.listedHosts(l.shape) {
		address, value := l.Host(name).Entry()
		entries[address] = value
	}
	for key, value := range l.entries {
		if _, listed := entries[key]; listed || value == invalidValue {
			entries[key] = value
		}
	}
	return l.SetInstances(ctx, entries)
}

// instanceOf returns the instance of a host; nil if there is none.
func (l *lab) instanceOf(ctx context.Context, host string) (*v1alpha1.WindowsInstance, error) {
	return l.Instance(ctx, host)
}

// nodeOf returns the Node of a host; nil if there is none.
func (l *lab) nodeOf(ctx context.Context, host string) (*corev1.Node, error) {
	if host == l.shape.Impostor {
		return nil, nil
	}
	node := &corev1.Node{}
	err := l.Client.Get(ctx, client.ObjectKey{Name: l.Host(host).NodeName()}, node)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return node, err
}

// desiredRelease returns the desired release of the operator.
func (l *lab) desiredRelease() testenv.Release { return l.options.Releases[l.model.Release] }

// lastLines returns the end of the operator's log.
func (l *lab) lastLines(n int) string {
	lines := strings.Split(string(l.log.copyText()), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
