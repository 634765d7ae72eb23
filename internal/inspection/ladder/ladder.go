// Package ladder diagnoses why a host is not a node, in a series of checks from the DNS name to the ports. The
// host may be unlisted. The package changes nothing.
package ladder

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/inspection/visit"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// portLimit is the timeout for a connection to a port of a host.
const portLimit = 5 * time.Second

// Diagnosis is the result of all checks.
type Diagnosis struct {
	Host string `json:"host"`
	// Instance is empty for an unlisted host.
	Instance string `json:"instance,omitempty"`
	User     string `json:"user"`
	Rungs    []Rung `json:"rungs"`
}

// Failed reports whether a check has failed.
func (d Diagnosis) Failed() bool {
	for _, rung := range d.Rungs {
		if rung.Outcome == Failed {
			return true
		}
	}
	return false
}

// Subject is the host to diagnose.
type Subject struct {
	Target remote.Target
	// Ours means that an agent of the operator has restricted its directory on the host, and Node that the host
	// is a node.
	Ours, Node bool
	// Cluster holds the facts of the cluster; nil if unknown, and Unknown contains the reason.
	Cluster *nodespec.Cluster
	Unknown string
}

// Climber diagnoses hosts.
type Climber struct {
	Visitor visit.Visitor
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Clock   clock.PassiveClock
	Line    support.ReleaseLine
	Payload *payload.Payload
}

// Diagnose diagnoses a host. It returns an error if the visit was interrupted or has left files behind; the
// faults of the host are in the diagnosis.
func (c Climber) Diagnose(ctx context.Context, subject Subject) (d Diagnosis, err error) {
	e := Evidence{
		Address: subject.Target.Address, User: subject.Target.User, Pinned: subject.Target.HostKey != nil,
		Cluster: subject.Cluster, Unknown: subject.Unknown, Node: subject.Node,
	}
	err = c.climb(ctx, subject, &e)
	d = Diagnosis{Host: subject.Target.Address, Instance: subject.Target.Instance, User: subject.Target.User}
	if ctx.Err() != nil {
		return d, errors.Join(context.Cause(ctx), err)
	}
	d.Rungs = Judge(c.Line, e)
	return d, err
}

// climb gathers the evidence.
func (c Climber) climb(ctx context.Context, subject Subject, e *Evidence) (err error) {
	var stay *visit.Visit
	if stay, e.Failure = c.Visitor.Begin(ctx, subject.Target); e.Failure != nil {
		return nil
	}
	defer func() { err = errors.Join(err, stay.Leave(ctx)) }()
	key := stay.HostKey()
	e.HostKey, e.LastReachedAddress = &key, stay.Address()
	if e.Failure = stay.Settle(ctx, subject.Ours); e.Failure != nil {
		return nil
	}
	e.Settled, e.Brought = true, stay.Lacked()
	var arguments []string
	if subject.Cluster != nil {
		arguments = hostjobs.APIServerArguments(*subject.Cluster)
	}
	asked := c.Clock.Now()
	result, failure := stay.Look(ctx, arguments...)
	if e.Failure = failure; failure != nil {
		return nil
	}
	e.Facts, e.Clock = result.Facts, support.ClockReading{Host: result.Facts.Time, Asked: asked, Answered: c.Clock.Now()}
	e.Lacks = c.lacks(subject, result.Facts.Payload)
	e.Answered = c.ports(ctx, e.LastReachedAddress)
	return nil
}

// lacks returns the number of payload bytes missing on a host.
func (c Climber) lacks(subject Subject, present map[string]string) int64 {
	platform := ""
	if subject.Cluster != nil {
		platform = subject.Cluster.Platform
	}
	total := int64(0)
	for _, component := range c.Payload.Components(platform) {
		for _, file := range component.Files {
			if _, there := present[file.SHA256]; !there {
				total += file.Size
			}
		}
	}
	return total
}

// ports connects to all ports that a node serves, concurrently.
func (c Climber) ports(ctx context.Context, address string) map[int]bool {
	ctx, cancel := context.WithTimeout(ctx, portLimit)
	defer cancel()
	answered := map[int]bool{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, port := range nodespec.ServedPorts() {
		group.Go(func() {
			conn, err := c.Dial(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(port)))
			if err != nil {
				return
			}
			_ = conn.Close() // nothing was sent
			mu.Lock()
			defer mu.Unlock()
			answered[port] = true
		})
	}
	group.Wait()
	return answered
}
