package testenv

import (
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/audit"
)

// ActivityMonitor counts the operator's actions. Leases and watches are permanent, and do not count.
type ActivityMonitor struct {
	env         *Environment
	log         *audit.Log
	connections int
}

// MonitorActivity starts to listen. The control plane must write an audit log.
func (r *Environment) MonitorActivity() (*ActivityMonitor, error) {
	log, err := audit.OpenAtEnd(r.Cluster().AuditLog)
	if err != nil {
		return nil, err
	}
	return &ActivityMonitor{env: r, log: log, connections: r.Connections()}, nil
}

// NextActivity returns the operator's requests to the API server, and the number of connections to hosts, since the
// previous call.
func (l *ActivityMonitor) NextActivity() (requests []audit.Event, connections int, err error) {
	events, err := l.log.Next()
	if err != nil {
		return nil, 0, err
	}
	operator := audit.ServiceAccount(l.env.Namespace(), "windows-machine-config-operator")
	for _, e := range events {
		if e.User.Username == operator && e.Object.Resource != "leases" && e.Verb != "watch" {
			requests = append(requests, e)
		}
	}
	before := l.connections
	l.connections = l.env.Connections()
	return requests, l.connections - before, nil
}

// Connections returns the number of SSH connections to hosts so far.
func (r *Environment) Connections() (n int) {
	for _, h := range append(r.Hosts(), r.MachineHosts()...) {
		n += h.Machine().Journal().Count(fake.KindConnection)
	}
	return n
}
