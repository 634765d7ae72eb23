package instance

import (
	"github.com/windows-machine-config/wmco/internal/controller/instance/adoption"
	"github.com/windows-machine-config/wmco/internal/controller/instance/certificates"
	"github.com/windows-machine-config/wmco/internal/controller/instance/change"
	"github.com/windows-machine-config/wmco/internal/controller/instance/delivery"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/drain"
	"github.com/windows-machine-config/wmco/internal/controller/instance/event"
	"github.com/windows-machine-config/wmco/internal/controller/instance/link"
	"github.com/windows-machine-config/wmco/internal/controller/instance/machines"
	"github.com/windows-machine-config/wmco/internal/controller/instance/naming"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/removal"
	"github.com/windows-machine-config/wmco/internal/controller/instance/rollback"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/controller/instance/turn"
)

// rooms are the packages below this one and the phases, each with what it needs of the operator.
type rooms struct {
	events   event.Recorder
	status   status.Writer
	link     *link.Link
	turn     *turn.Turn
	rollback *rollback.Rollback
	adoption *adoption.Adoption
	names    *naming.Names
	removal  *removal.Removal
	nodes    nodes.Nodes
	specs    desired.Specs
	changes  *change.Changes
	signer   certificates.Signer
	delivery *delivery.Delivery

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

// rooms wires them, those that hold others by reference: by value, they would take 100 KB of each worker's stack. Nothing of them outlives a reconcile: what must is in the status or in the sessions.
func (r *Reconciler) rooms() *rooms {
	a := &rooms{}
	a.events = event.Recorder{EventRecorder: r.Events}
	a.status = status.Writer{Client: r.Client, Live: r.Live, Events: a.events, Clock: r.Clock, Pace: &r.pace,
		Namespace: r.Namespace, Version: r.Version}
	inCluster := machines.Machines{Live: r.Live, Listed: &r.machines, Clock: r.Clock}
	a.nodes = nodes.Nodes{
		Client: r.Client, Live: r.Live, Listed: &r.instances, Changes: r.nodeChanges, Clock: r.Clock, Machines: inCluster,
		Namespace: r.Namespace, Version: r.Version,
	}.InPass()
	a.link = &link.Link{
		Hosts: r.Hosts, Client: r.Client, Machines: inCluster, Status: a.status, Events: a.events, Payload: r.Payload,
		Clock: r.Clock, Transfers: &r.transfers, Jitter: r.Jitter, Namespace: r.Namespace,
	}
	a.specs = desired.Specs{
		Payload: r.Payload, Nodes: a.nodes, Version: r.Version, Log: r.Log, PauseImage: r.PauseImage, Debug: r.Debug,
	}
	a.changes = &change.Changes{Specs: a.specs, Clock: r.Clock, Namespace: r.Namespace, Version: r.Version}
	a.turn = &turn.Turn{
		Gate: r.Gate, Nodes: a.nodes, Machines: inCluster, Drainer: drain.Drainer{Clientset: r.Clientset}, Link: a.link,
		Status: a.status, Events: a.events, Specs: a.specs, Changes: a.changes, Clock: r.Clock, Version: r.Version,
	}
	a.delivery = &delivery.Delivery{
		Link: a.link, Turn: a.turn, Status: a.status, Events: a.events, Payload: r.Payload,
	}
	a.signer = certificates.Signer{Clientset: r.Clientset, Clock: r.Clock, Namespace: r.Namespace}
	a.rollback = &rollback.Rollback{
		Client: r.Client, Nodes: a.nodes, Link: a.link, Turn: a.turn, Status: a.status, Events: a.events,
		Changes: a.changes, Clock: r.Clock,
	}
	a.adoption = &adoption.Adoption{
		Client: r.Client, Live: r.Live, Nodes: a.nodes, Machines: inCluster, Link: a.link, Status: a.status,
		Events: a.events, Namespace: r.Namespace, Dial: r.Dial,
	}
	a.names = &naming.Names{Nodes: a.nodes, Machines: inCluster, Adoption: a.adoption, Link: a.link, Status: a.status}
	a.removal = &removal.Removal{
		Client: r.Client, Nodes: a.nodes, Link: a.link, Turn: a.turn, Delivery: a.delivery, Rollback: a.rollback,
		Adoption: a.adoption, Signer: a.signer, Events: a.events, Clock: r.Clock, Forget: r.forget, Namespace: r.Namespace,
	}
	r.wirePhases(a)
	return a
}

// wirePhases gives the phases of this package what they need.
func (r *Reconciler) wirePhases(a *rooms) {
	a.entry = entry{namespace: r.Namespace}
	a.keep = keep{nodes: a.nodes, events: a.events, clock: r.Clock}
	a.key = key{client: r.Client, namespace: r.Namespace}
	a.cluster = clusterFacts{cluster: r.Cluster}
	a.settings = settings{gate: r.Gate}
	a.remember = remember{nodes: a.nodes, adoption: a.adoption, status: a.status, client: r.Client}
	a.renew = renew{
		link: a.link, status: a.status, nodes: a.nodes, specs: a.specs, signer: a.signer, identify: identify{nodes: a.nodes},
		clock: r.Clock, jitter: r.Jitter,
	}
	a.idle = idle{
		turn: a.turn, nodes: a.nodes, specs: a.specs, rollback: a.rollback, clock: r.Clock, version: r.Version,
		addresses: addresses{lookUp: r.LookUp, jitter: r.Jitter},
	}
	a.replacement = replacement{turn: a.turn, nodes: a.nodes}
	a.eligible = eligible{line: r.Line, turn: a.turn, nodes: a.nodes}
	a.adoptKey = adoptKey{idle: &a.idle, link: a.link, nodes: a.nodes, events: a.events}
	a.identify = identify{nodes: a.nodes}
	a.reboot = reboot{
		link: a.link, turn: a.turn, status: a.status, nodes: a.nodes, events: a.events, clock: r.Clock,
	}
	a.supported = supported{line: r.Line, nodes: a.nodes, turn: a.turn, names: a.names, adoption: a.adoption}
	a.install = install{specs: a.specs, delivery: a.delivery, status: a.status}
	a.join = join{
		status: a.status, nodes: a.nodes, events: a.events, specs: a.specs, delivery: a.delivery, signer: a.signer,
		names: a.names, clock: r.Clock, superseded: r.superseded,
	}
	a.network = network{nodes: a.nodes, specs: a.specs, delivery: a.delivery, clock: r.Clock}
	a.verify = verify{link: a.link, specs: a.specs}
	a.release = release{
		link: a.link, turn: a.turn, status: a.status, nodes: a.nodes, events: a.events, specs: a.specs, clock: r.Clock,
		version: r.Version, dial: r.Dial,
	}
	a.unmanaged = unmanaged{link: a.link, turn: a.turn, nodes: a.nodes}
}
