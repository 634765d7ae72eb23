package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/lab/audit"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/linuxns"
	labpayload "github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

const (
	// apiAddress is the address of the API server inside the lab's network.
	apiAddress = "10.9.255.1"
	apiPort    = "6443"
	// metricsAddress is the address of the operator's metrics, as in its Deployment.
	metricsAddress = apiAddress + ":8443"
	domain         = "lab.example.com"
	// serviceAccount is the ServiceAccount of the operator, as in deploy/.
	serviceAccount = "windows-machine-config-operator"
	// nodeGracePeriod is the maximum time between heartbeats of a node: when a thousand kubelets share a core with
	// all other programs, heartbeats may be late.
	nodeGracePeriod = 5 * time.Minute
)

// Options configure a measurement.
type Options struct {
	Hosts int
	// Scenarios are measured after Join.
	Scenarios []Scenario
	// Operator and Agent are the executables that `make` builds.
	Operator, Agent string
	// SizePercent is the size of the simulated programs in the payload, in percent of their usual size.
	SizePercent int
	// RoundTrip is the round-trip time to the hosts.
	RoundTrip time.Duration
	// MaxUnavailable is the number of nodes that an upgrade may disrupt at a time.
	MaxUnavailable int
	// Timeout is the timeout of each scenario, and Idle the duration of the scenario Idle.
	Timeout, IdleDuration time.Duration
	// MemoryLimit is the operator's GOMEMLIMIT; "" for the value of the Deployment.
	MemoryLimit string
	// Inside runs the operator in this process, so that a profile also includes the operator. The operator
	// cannot be restarted then.
	Inside bool
	// Profile is the file for a profile of this process, which starts when the hosts are listed; "" for none.
	Profile string
	// Log is the file for the operator's log.
	Log string
	// Dir is an empty directory for all files.
	Dir string
	// Progress prints progress.
	Progress func(format string, args ...any)
}

// lab is a fleet under measurement.
type lab struct {
	Options
	payload  *payload.Payload
	result   Result
	env      *testenv.Environment
	audit    *audit.Requests
	operator *testenv.OperatorProcess // nil while the operator runs in this process
	inside   *testenv.Operator
	token    string // of the service account that reads metrics
}

// networkConfig returns the configuration of the lab's network for a number of hosts.
func networkConfig(hosts int, controlPlane string) linuxns.Config {
	api := netip.MustParseAddr(apiAddress)
	config := linuxns.Config{
		Addresses:   []netip.Addr{api},
		Names:       map[string]netip.Addr{"api." + domain: api, "api-int." + domain: api},
		HostName:    "lab",
		Environ:     []string{"WMCO_LAB_CONTROLPLANE=" + controlPlane},
		GracePeriod: time.Minute,
	}
	for i, h := range testenv.Hosts(hosts) {
		address := netip.MustParseAddr(testenv.Address(i + 1))
		config.Addresses = append(config.Addresses, address)
		if h.DNSName != "" {
			config.Names[h.DNSName] = address
		}
	}
	return config
}

// Run measures a fleet. It must run in a separate network; see Command.
func Run(ctx context.Context, o Options) (result Result, err error) {
	if err := checkProc(); err != nil {
		return Result{}, err
	}
	l := &lab{Options: o, result: Result{Hosts: o.Hosts, SizePercent: o.SizePercent, RoundTrip: o.RoundTrip, MaxUnavailable: o.MaxUnavailable}}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.start(ctx); err != nil {
		return Result{}, err
	}
	if o.Profile != "" {
		file, err := os.Create(o.Profile)
		if err != nil {
			return Result{}, fmt.Errorf("make a profile: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		if err := pprof.StartCPUProfile(file); err != nil {
			return Result{}, fmt.Errorf("make a profile: %w", err)
		}
		defer pprof.StopCPUProfile()
	}
	for _, scenario := range append([]Scenario{Join}, o.Scenarios...) {
		phase, err := l.measureScenario(ctx, scenario)
		if err != nil {
			return l.result, fmt.Errorf("%d hosts, %s: %w", o.Hosts, scenario, err)
		}
		l.result.Phases = append(l.result.Phases, phase)
		l.Progress("  %s", phase.formatSummary(o.Hosts))
	}
	return l.result, nil
}

// start boots the control plane and the hosts, and starts the operator, which has no work yet.
func (l *lab) start(ctx context.Context) error {
	l.Progress("%d hosts: booting them and a control plane", l.Hosts)
	version, err := testenv.OperatorVersion(ctx, l.Operator)
	if err != nil {
		return err
	}
	dir := filepath.Join(l.Dir, "payload")
	l.payload, err = labpayload.Generate(dir, l.Agent, version, labpayload.Options{SizePercent: l.SizePercent})
	if err != nil {
		return err
	}
	for _, component := range l.payload.Components(payload.Target{Platform: "None", Kubernetes: labpayload.Kubernetes}) {
		for _, file := range component.Files {
			l.result.PayloadBytes += file.Size
		}
	}
	var link *winhost.Link
	if l.RoundTrip > 0 {
		link = winhost.NewLink(clock.RealClock{}, winhost.LinkProperties{RoundTrip: l.RoundTrip})
	}
	l.env, err = testenv.New(ctx, testenv.Options{
		Hosts: testenv.InstantHosts(l.Hosts), Link: link, Network: testenv.RealNetwork{}, Agent: l.Agent, Version: version,
		PayloadDir: dir, Dir: filepath.Join(l.Dir, "rig"),
		ControlPlane: cluster.Options{Listen: net.JoinHostPort(apiAddress, apiPort), Domain: domain, Audit: true,
			NodeGracePeriod: nodeGracePeriod},
	})
	if err != nil {
		return err
	}
	if err := l.widenPodNetwork(ctx); err != nil {
		return err
	}
	if _, err := l.env.InstallOperator(ctx, ""); err != nil {
		return err
	}
	if err := l.env.CreateKey(ctx); err != nil {
		return err
	}
	l.audit = audit.CountRequests(audit.Open(l.env.Cluster().AuditLog), audit.ServiceAccount(l.env.Namespace(), serviceAccount))
	if l.Inside {
		if err := l.runInside(testenv.Release{Version: version, PayloadDirectory: dir}); err != nil {
			return err
		}
		_, err = l.awaitIdle(ctx)
		return err
	}
	if err := l.allowReader(ctx); err != nil {
		return err
	}
	environ, err := l.goSettings(ctx)
	if err != nil {
		return err
	}
	l.operator, err = l.env.StartOperator(testenv.ProcessOptions{Program: l.Operator, Log: l.Log, Environ: environ,
		Flags: []string{"--metrics-bind-address=" + metricsAddress}})
	if err != nil {
		return err
	}
	_, err = l.awaitIdle(ctx)
	return err
}

// goSettings returns the environment variables of the Deployment for Go's runtime. Variables of this process
// must not affect the operator.
func (l *lab) goSettings(ctx context.Context) ([]string, error) {
	deployment := &appsv1.Deployment{}
	name := client.ObjectKey{Namespace: l.env.Namespace(), Name: "windows-machine-config-operator"}
	if err := l.env.Client.Get(ctx, name, deployment); err != nil {
		return nil, fmt.Errorf("read the operator's Deployment: %w", err)
	}
	settings := map[string]string{"GOMEMLIMIT": "off", "GOGC": "100"} // Go's defaults
	for _, container := range deployment.Spec.Template.Spec.Containers {
		for _, variable := range container.Env {
			if _, known := settings[variable.Name]; known {
				settings[variable.Name] = variable.Value
			}
		}
	}
	settings["GOMEMLIMIT"] = cmp.Or(l.MemoryLimit, settings["GOMEMLIMIT"])
	return []string{"GOMEMLIMIT=" + settings["GOMEMLIMIT"], "GOGC=" + settings["GOGC"]}, nil
}

// widenPodNetwork extends the network of Windows pods to 1,024 nodes: the network in the installer's documents,
// a /14 of /23, contains 512.
func (l *lab) widenPodNetwork(ctx context.Context) error {
	network := &operatorv1.Network{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	patch := `{"spec":{"defaultNetwork":{"ovnKubernetesConfig":{"hybridOverlayConfig":{"hybridClusterNetwork":[{"cidr":"10.132.0.0/14","hostPrefix":24}]}}}}}`
	if err := l.env.Client.Patch(ctx, network, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("widen the network of Windows pods: %w", err)
	}
	return nil
}

// runInside runs an operator in this process, with the settings of the real program.
func (l *lab) runInside(release testenv.Release) error {
	settings, err := nodespec.ParseLogSettings("", "", "")
	if err != nil {
		return err
	}
	l.inside, err = l.env.RunOperator(testenv.WithRelease(release), func(c *operator.Config) { c.Log = settings })
	return err
}

func (l *lab) close() error {
	var errs []error
	if l.operator != nil {
		l.operator.Kill()
	}
	if l.env != nil {
		errs = append(errs, l.env.Close())
	}
	return errors.Join(errs...)
}

// checkRunning returns an error if a process has ended that must not end; nil while all processes run.
func (l *lab) checkRunning() error {
	select {
	case <-l.env.Cluster().Done():
		return errors.New("the control plane has ended")
	default:
	}
	if l.operator != nil {
		select {
		case <-l.operator.Done():
			return l.operator.Failure()
		default:
		}
	}
	if l.inside != nil {
		select {
		case <-l.inside.Done():
			return errors.New("the operator has ended")
		default:
		}
	}
	return nil
}
