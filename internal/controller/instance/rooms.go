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

// rooms are the dependencies of one reconcile: the packages below this one, and the phases.
type rooms struct {
	events   status.Recorder
	status   status.Writer
	turn     *drain.Turn
	rollback *rollback.Rollback
	adoption *adoption.Adoption
	names    *identity.Names
	removal  *removal.Removal
	nodes    nodes.Nodes
	specs    desired.Specs
	changes  *rollback.Changes
	signer   identity.Signer
	delivery delivery

	reach       reach
	entry       entry
	keep        keep
	key         key
	cluster     clusterFacts
	settings    settings
	remember    remember
	renew       renew
	idle        idle
	replacement replacement
	eligible    eligible
	adoptKey    adoptKey
	identify    identify
	reboot      reboot
	supported   supported
	install     install
	join        join
	network     network
	verify      verify
	release     release
	unmanaged   unmanaged
}

// rooms creates the dependencies of one reconcile. Types with nested dependencies are pointers, because values
// would take 100 KB of each worker's stack. State that must outlive a reconcile is in the status or in the
// sessions.
func (r *Reconciler) rooms() *rooms {
	a := &rooms{}
	a.events = status.NewRecorder(r.Events)
	a.status = status.Writer{Client: r.Client, Events: a.events, Clock: r.Clock, Pace: &r.pace,
		Namespace: r.Namespace, Version: r.Version}
	listed := queue.Lists[v1alpha1.WindowsInstance]{Shared: &r.instances, Clock: r.Clock, Patience: r.Patience, Trigger: r.Jobs.Trigger}
	inCluster := nodes.Machines{Live: r.Live, Listed: queue.Lists[machinev1beta1.Machine]{
		Shared: &r.machines, Clock: r.Clock, Patience: r.Patience, Trigger: r.Jobs.Trigger}}
	a.nodes = nodes.Nodes{
		Client: r.Client, Live: r.Live, Listed: listed, Written: &r.written, Quiet: r.Quiet, Clock: r.Clock, Machines: inCluster,
		Namespace: r.Namespace, Version: r.Version,
	}
	a.reach = reach{client: r.Client, machines: inCluster, events: a.events, jitter: r.Jitter, namespace: r.Namespace}
	a.specs = desired.Specs{
		Payload: r.Payload, Nodes: a.nodes, Version: r.Version, Log: r.Log, PauseImage: r.PauseImage, Debug: r.Debug,
	}
	a.changes = &rollback.Changes{Specs: a.specs, Clock: r.Clock, Namespace: r.Namespace, Version: r.Version}
	a.turn = &drain.Turn{
		Gate: r.Gate, Nodes: a.nodes, Machines: inCluster, Drainer: drain.Drainer{Clientset: r.Clientset},
		Events: a.events, Specs: a.specs, Changes: a.changes, Clock: r.Clock, Version: r.Version,
	}
	a.delivery = delivery{turn: a.turn, events: a.events}
	a.signer = identity.Signer{Clientset: r.Clientset, Clock: r.Clock, Namespace: r.Namespace}
	a.rollback = &rollback.Rollback{
		Client: r.Client, Nodes: a.nodes, Events: a.events,
		Changes: a.changes, Clock: r.Clock,
	}
	a.adoption = &adoption.Adoption{
		Client: r.Client, Live: r.Live, Nodes: a.nodes, Machines: inCluster, Clock: r.Clock, Events: a.events, Namespace: r.Namespace, Dial: r.Dial,
	}
	a.names = &identity.Names{Nodes: a.nodes, Machines: inCluster, Adoption: a.adoption, Clock: r.Clock}
	a.removal = &removal.Removal{
		Client: r.Client, Nodes: a.nodes, Connect: a.reach.run, Inspect: inspect, Turn: a.turn, Rollback: a.rollback,
		Adoption: a.adoption, Signer: a.signer, Events: a.events, Clock: r.Clock, Namespace: r.Namespace,
	}
	r.wirePhases(a)
	return a
}

// wirePhases sets the dependencies of the phases of this package.
func (r *Reconciler) wirePhases(a *rooms) {
	a.entry = entry{namespace: r.Namespace}
	a.keep = keep{nodes: a.nodes, events: a.events, clock: r.Clock}
	a.key = key{client: r.Client, namespace: r.Namespace}
	a.cluster = clusterFacts{cluster: r.Cluster}
	a.settings = settings{gate: r.Gate}
	a.remember = remember{nodes: a.nodes, adoption: a.adoption, client: r.Client}
	a.renew = renew{
		reach: a.reach, nodes: a.nodes, specs: a.specs, signer: a.signer, identify: identify{nodes: a.nodes},
		clock: r.Clock, jitter: r.Jitter,
	}
	a.idle = idle{
		turn: a.turn, nodes: a.nodes, specs: a.specs, rollback: a.rollback, clock: r.Clock, version: r.Version,
		addresses: addresses{lookUp: r.LookUp, jitter: r.Jitter},
	}
	a.replacement = replacement{turn: a.turn, nodes: a.nodes}
	a.eligible = eligible{line: r.Line, turn: a.turn, nodes: a.nodes}
	a.adoptKey = adoptKey{idle: &a.idle, nodes: a.nodes, events: a.events}
	a.identify = identify{nodes: a.nodes}
	a.reboot = reboot{
		turn: a.turn, nodes: a.nodes, events: a.events, clock: r.Clock,
	}
	a.supported = supported{line: r.Line, nodes: a.nodes, names: a.names, adoption: a.adoption}
	a.install = install{specs: a.specs, delivery: a.delivery}
	a.join = join{
		nodes: a.nodes, events: a.events, specs: a.specs, delivery: a.delivery, signer: a.signer,
		names: a.names, clock: r.Clock,
	}
	a.network = network{nodes: a.nodes, specs: a.specs, delivery: a.delivery, clock: r.Clock}
	a.verify = verify{specs: a.specs, dial: r.Dial}
	a.release = release{
		nodes: a.nodes, events: a.events, specs: a.specs, clock: r.Clock, version: r.Version,
	}
	a.unmanaged = unmanaged{turn: a.turn, nodes: a.nodes}
}
