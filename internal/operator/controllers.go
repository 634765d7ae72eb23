package operator

import (
	"fmt"
	"math/rand/v2"
	"net/http"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/admission"
	"github.com/windows-machine-config/wmco/internal/controller/clusterconfig"
	"github.com/windows-machine-config/wmco/internal/controller/csr"
	"github.com/windows-machine-config/wmco/internal/controller/disruption"
	"github.com/windows-machine-config/wmco/internal/controller/instance"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/legacycleanup"
	"github.com/windows-machine-config/wmco/internal/controller/metrics"
	"github.com/windows-machine-config/wmco/internal/controller/monitoring"
	"github.com/windows-machine-config/wmco/internal/controller/nodecondition"
	"github.com/windows-machine-config/wmco/internal/controller/operatorcondition"
	"github.com/windows-machine-config/wmco/internal/controller/orphan"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/controller/replacement"
	"github.com/windows-machine-config/wmco/internal/controller/source/byoh"
	"github.com/windows-machine-config/wmco/internal/controller/source/machine"
	"github.com/windows-machine-config/wmco/internal/controller/sshkeysecret"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// addControllers adds the controllers for every cluster to the manager, and the controllers of the Machine API
// if the API server serves it.
func (c Config) addControllers(mgr ctrl.Manager, served *servedKinds) (*remote.Pool, error) {
	clientset, err := kubernetes.NewForConfig(c.RESTConfig)
	if err != nil {
		return nil, fmt.Errorf("create a client for the API server: %w", err)
	}
	files, err := c.openPayload()
	if err != nil {
		return nil, err
	}
	live := served.newMachineReader(mgr.GetAPIReader())
	pool := remote.NewPool(&remote.Dialer{Dial: c.Dial, LookUp: c.LookUp, Clock: c.Clock, LegacyAlgorithms: c.LegacyAlgorithms, Traffic: metrics.Traffic{}})
	eventRecorder := recorder.Bounded(mgr.GetEventRecorder(v1alpha1.OperatorName))
	facts := clusterconfig.NewSource(live, c.Namespace)
	gate := disruption.NewGate(disruption.Options{
		Client: mgr.GetClient(), Live: live, Namespace: c.Namespace, Version: c.Version, Operator: processIdentity(),
		Configuration: c.configurationOf(facts, files), Events: eventRecorder, Clock: c.Clock,
	})

	conditions := operatorcondition.NewWriter(mgr.GetClient(), live, c.Namespace, c.OperatorCondition)
	facts.Report = clusterconfig.NewReporter(live, eventRecorder, conditions, c.Namespace, c.Line)

	hosts := &byoh.Reconciler{
		Client: mgr.GetClient(), Live: live, Namespace: c.Namespace, Events: eventRecorder, Clock: c.Clock,
		Delays: c.RemovalDelays,
	}
	key := &sshkeysecret.Reconciler{Client: mgr.GetClient(), Namespace: c.Namespace, Events: eventRecorder, Cluster: facts}
	requests := &csr.Reconciler{Client: mgr.GetClient(), Live: live, Clientset: clientset, Namespace: c.Namespace, Events: eventRecorder, Cluster: facts, Clock: c.Clock}
	instances := &instance.Reconciler{
		Client: mgr.GetClient(), Live: live, Clientset: clientset, Events: eventRecorder, Clock: c.Clock,
		Namespace: c.Namespace, Version: c.Version, Line: c.Line, Cluster: facts, Payload: files, Jobs: hostjobs.NewRunner(pool, files, c.Clock), NodeWaitStatusDelay: instance.NodeWaitStatusDelay, ListWaitTimeout: instance.ListWaitTimeout,
		Dial: c.Dial, LookUp: c.LookUp,
		Gate: gate, Log: c.Log, PauseImage: c.PauseImage, Debug: c.Debug, Jitter: rand.Float64,
	}
	disruptions := &disruption.Reconciler{
		Gate: gate, Conditions: conditions, Clock: c.Clock,
	}
	guards := &admission.Reconciler{Client: mgr.GetClient(), Live: live, Namespace: c.Namespace, Events: eventRecorder}
	machineControllers := func() error {
		if !served.hasMachineAPI() {
			return nil
		}
		kept, err := machine.NewCache(mgr)
		if err != nil {
			return err
		}
		if err := disruptions.WatchMachines(kept); err != nil {
			return err
		}
		return c.addMachineControllers(mgr, kept, gate, eventRecorder, facts)
	}
	return pool, setUpInOrder(
		func() error { return facts.SetupWithManager(mgr, served.isServed) },
		func() error { return hosts.SetupWithManager(mgr) },
		func() error { return key.SetupWithManager(mgr) },
		func() error { return requests.SetupWithManager(mgr) },
		func() error { return instances.SetupWithManager(mgr, facts.Changes()) },
		func() error {
			return mgr.AddHealthzCheck("jobs", func(*http.Request) error { return checkJobs(instances.Jobs.MaxOverdue()) })
		},
		func() error { return disruptions.SetupWithManager(mgr) },
		func() error { return c.addNodeControllers(mgr, eventRecorder, conditions) },
		func() error { return mgr.Add(&metrics.Instances{Client: mgr.GetClient(), Namespace: c.Namespace}) },
		func() error { return guards.SetupWithManager(mgr) },
		machineControllers,
		func() error { return mgr.Add(served) },
	)
}

// configurationOf returns a function that returns the desired configuration of the nodes for the current
// cluster; empty if the cluster's configuration is unknown.
func (c Config) configurationOf(facts *clusterconfig.Source, files *payload.Payload) func() string {
	specs := desired.SpecBuilder{Payload: files, Line: c.Line, Version: c.Version, Log: c.Log, PauseImage: c.PauseImage, Debug: c.Debug}
	return func() string {
		current, err := facts.Current()
		if err != nil {
			return ""
		}
		return specs.ConfigurationDigest(current)
	}
}

// setUpInOrder runs the setups of controllers in order.
func setUpInOrder(setups ...func() error) error {
	for _, setup := range setups {
		if err := setup(); err != nil {
			return fmt.Errorf("set up a controller: %w", err)
		}
	}
	return nil
}

// addNodeControllers adds the controllers that watch Nodes and change no host.
func (c Config) addNodeControllers(mgr ctrl.Manager, eventRecorder events.EventRecorder,
	conditionsForOLM *operatorcondition.Writer) error {
	conditionsOfNodes := &nodecondition.Reconciler{Client: mgr.GetClient(), Namespace: c.Namespace, Events: eventRecorder, Clock: c.Clock}
	orphans := &orphan.Reconciler{Client: mgr.GetClient(), Namespace: c.Namespace, Events: eventRecorder, Clock: c.Clock}
	exporters := &monitoring.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Namespace: c.Namespace, Events: eventRecorder, Conditions: conditionsForOLM, Clock: c.Clock,
	}
	leftovers := &legacycleanup.Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Namespace: c.Namespace, Version: c.Version, Events: eventRecorder}
	return setUpInOrder(
		func() error { return conditionsOfNodes.SetupWithManager(mgr) },
		func() error { return orphans.SetupWithManager(mgr) },
		func() error { return leftovers.SetupWithManager(mgr) },
		func() error { return exporters.SetupWithManager(mgr) },
	)
}

// addMachineControllers adds the controllers that work with Machines.
func (c Config) addMachineControllers(mgr ctrl.Manager, kept cache.Cache, gate disruption.Gate,
	eventRecorder events.EventRecorder, facts *clusterconfig.Source) error {
	machines := &machine.Reconciler{Client: mgr.GetClient(), Machines: kept, Live: mgr.GetAPIReader(),
		Namespace: c.Namespace, Events: eventRecorder, Cluster: facts.Current}
	if err := machines.SetupWithManager(mgr, kept, facts.Changes()); err != nil {
		return err
	}
	replacements := &replacement.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Namespace: c.Namespace, Version: c.Version, Line: c.Line,
		Cluster: facts.Current, Gate: gate, Events: eventRecorder, Clock: c.Clock,
	}
	return replacements.SetupWithManager(mgr, kept)
}

// openPayload opens the payload for hosts. Missing components are logged; the hosts run without these, or wait.
func (c Config) openPayload() (*payload.Payload, error) {
	files, err := payload.Load(c.PayloadDirectory)
	if err != nil {
		return nil, err
	}
	for _, gap := range files.Gaps() {
		c.Logger.Info("the payload lacks a component; hosts run without it", "why", gap.Reason.Error())
	}
	return files, nil
}
