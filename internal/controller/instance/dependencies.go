package instance

import (
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/adoption"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/drain"
	"github.com/windows-machine-config/wmco/internal/controller/instance/identity"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/removal"
	"github.com/windows-machine-config/wmco/internal/controller/instance/rollback"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
)

// dependencies are the dependencies of one reconcile: the packages below this one, and the phases.
type dependencies struct {
	events    status.Recorder
	status    status.Writer
	disruptor *drain.Disruptor
	rollback  *rollback.Rollback
	adoption  *adoption.Adoption
	nodeNamer *identity.NodeNamer
	removal   *removal.Removal
	nodes     nodes.Nodes
	specs     desired.SpecBuilder
	changes   *rollback.FailedChanges
	signer    identity.Signer
	delivery  delivery

	connect         connectPhase
	entryValidation entryValidationPhase
	drift           driftPhase
	key             sshKeyPhase
	cluster         clusterFactsPhase
	settings        settingsPhase
	rebind          rebindPhase
	renew           renewalPhase
	idle            idlePhase
	replacement     replacementPhase
	eligibility     eligibilityPhase
	adoptKey        adoptKeyPhase
	identify        identifyPhase
	reboot          rebootPhase
	hostSupport     supportPhase
	install         installPhase
	join            joinPhase
	network         networkPhase
	verify          verifyPhase
	activate        activatePhase
	unmanaged       unmanagedPhase
}

// newDependencies creates the dependencies of one reconcile. Types with nested dependencies are pointers, because
// values would take 100 KB of each worker's stack. State that must outlive a reconcile is in the status or in the
// sessions.
func (r *Reconciler) newDependencies() *dependencies {
	a := &dependencies{}
	a.events = status.NewRecorder(r.Events)
	a.status = status.Writer{Client: r.Client, Events: a.events, Clock: r.Clock, ProgressLimiter: &r.progressLimiter,
		Namespace: r.Namespace, Version: r.Version}
	listed := queue.Lists[v1alpha1.WindowsInstance]{Shared: &r.instances, Clock: r.Clock, WaitTimeout: r.ListWaitTimeout, Trigger: r.Jobs.Trigger}
	inCluster := nodes.Machines{Live: r.Live, Listed: queue.Lists[machinev1beta1.Machine]{
		Shared: &r.machines, Clock: r.Clock, WaitTimeout: r.ListWaitTimeout, Trigger: r.Jobs.Trigger}}
	a.nodes = nodes.Nodes{
		Client: r.Client, Live: r.Live, Listed: listed, Written: &r.written, NodeWaitStatusDelay: r.NodeWaitStatusDelay, Clock: r.Clock, Machines: inCluster,
		Namespace: r.Namespace, Version: r.Version,
	}
	a.connect = connectPhase{client: r.Client, machines: inCluster, events: a.events, jitter: r.Jitter, namespace: r.Namespace}
	a.specs = desired.SpecBuilder{
		Line:    r.Line,
		Payload: r.Payload, Nodes: a.nodes, Version: r.Version, Log: r.Log, PauseImage: r.PauseImage, Debug: r.Debug,
	}
	a.changes = &rollback.FailedChanges{Specs: a.specs, Clock: r.Clock, Namespace: r.Namespace, Version: r.Version}
	a.disruptor = &drain.Disruptor{
		Gate: r.Gate, Nodes: a.nodes, Machines: inCluster, Drainer: drain.Drainer{Clientset: r.Clientset},
		Events: a.events, Specs: a.specs, Changes: a.changes, Clock: r.Clock, Version: r.Version,
	}
	a.delivery = delivery{disruptor: a.disruptor, events: a.events}
	a.signer = identity.Signer{Clientset: r.Clientset, Clock: r.Clock, Namespace: r.Namespace}
	a.rollback = &rollback.Rollback{
		Client: r.Client, Nodes: a.nodes, Events: a.events,
		Changes: a.changes, Clock: r.Clock,
	}
	a.adoption = &adoption.Adoption{
		Client: r.Client, Live: r.Live, Nodes: a.nodes, Machines: inCluster, Clock: r.Clock, Events: a.events, Namespace: r.Namespace, Dial: r.Dial,
	}
	a.nodeNamer = &identity.NodeNamer{Nodes: a.nodes, Machines: inCluster, Adoption: a.adoption, Clock: r.Clock}
	a.removal = &removal.Removal{
		Client: r.Client, Nodes: a.nodes, Connect: a.connect.reconcile, Inspect: inspectHost, Disruptor: a.disruptor, Rollback: a.rollback,
		Adoption: a.adoption, Signer: a.signer, Events: a.events, Clock: r.Clock, Namespace: r.Namespace,
	}
	r.wirePhases(a)
	return a
}

// wirePhases sets the dependencies of the phases of this package.
func (r *Reconciler) wirePhases(a *dependencies) {
	a.entryValidation = entryValidationPhase{namespace: r.Namespace}
	a.drift = driftPhase{nodes: a.nodes, events: a.events, clock: r.Clock}
	a.key = sshKeyPhase{client: r.Client, namespace: r.Namespace}
	a.cluster = clusterFactsPhase{cluster: r.Cluster}
	a.settings = settingsPhase{gate: r.Gate}
	a.rebind = rebindPhase{nodes: a.nodes, adoption: a.adoption, client: r.Client}
	a.renew = renewalPhase{
		connect: a.connect, nodes: a.nodes, specs: a.specs, signer: a.signer, identify: identifyPhase{nodes: a.nodes},
		clock: r.Clock, jitter: r.Jitter,
	}
	a.idle = idlePhase{
		disruptor: a.disruptor, nodes: a.nodes, specs: a.specs, rollback: a.rollback, clock: r.Clock, version: r.Version,
		addresses: addressWatcher{lookUp: r.LookUp, jitter: r.Jitter},
	}
	a.replacement = replacementPhase{disruptor: a.disruptor, nodes: a.nodes}
	a.eligibility = eligibilityPhase{line: r.Line, disruptor: a.disruptor, nodes: a.nodes, specs: a.specs}
	a.adoptKey = adoptKeyPhase{idle: &a.idle, nodes: a.nodes, events: a.events}
	a.identify = identifyPhase{nodes: a.nodes}
	a.reboot = rebootPhase{
		disruptor: a.disruptor, nodes: a.nodes, events: a.events, clock: r.Clock,
	}
	a.hostSupport = supportPhase{line: r.Line, nodes: a.nodes, nodeNamer: a.nodeNamer, adoption: a.adoption}
	a.install = installPhase{specs: a.specs, delivery: a.delivery}
	a.join = joinPhase{
		nodes: a.nodes, events: a.events, specs: a.specs, delivery: a.delivery, signer: a.signer,
		nodeNamer: a.nodeNamer, clock: r.Clock,
	}
	a.network = networkPhase{nodes: a.nodes, specs: a.specs, delivery: a.delivery, clock: r.Clock}
	a.verify = verifyPhase{specs: a.specs, dial: r.Dial}
	a.activate = activatePhase{
		nodes: a.nodes, events: a.events, specs: a.specs, clock: r.Clock, version: r.Version,
	}
	a.unmanaged = unmanagedPhase{disruptor: a.disruptor, nodes: a.nodes}
}
