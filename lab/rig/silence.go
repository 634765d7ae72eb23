package rig

import (
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/audit"
)

// Listener hears what the operator does. Leases and watches go on always, and do not count.
type Listener struct {
	rig         *Rig
	log         *audit.Log
	connections int
}

// Listen begins to listen. The control plane must keep an audit log.
func (r *Rig) Listen() (*Listener, error) {
	log, err := audit.OpenAtEnd(r.Cluster().AuditLog)
	if err != nil {
		return nil, err
	}
	return &Listener{rig: r, log: log, connections: r.Connections()}, nil
}

// Heard returns the operator's requests to the API server, and how many connections hosts have had, since it was called
// last.
func (l *Listener) Heard() (requests []audit.Event, connections int, err error) {
	events, err := l.log.Next()
	if err != nil {
		return nil, 0, err
	}
	operator := audit.ServiceAccount(l.rig.Namespace(), "windows-machine-config-operator")
	for _, e := range events {
		if e.User.Username == operator && e.Object.Resource != "leases" && e.Verb != "watch" {
			requests = append(requests, e)
		}
	}
	before := l.connections
	l.connections = l.rig.Connections()
	return requests, l.connections - before, nil
}

// Connections is how many SSH connections hosts have had.
func (r *Rig) Connections() (n int) {
	for _, h := range append(r.Hosts(), r.MachineHosts()...) {
		n += h.Machine().Journal().Count(fake.KindConnection)
	}
	return n
}
