// Package ladder finds out how far a host is from being a node: from its name to its ports, rung by rung, also a host
// that is in no list. It changes nothing.
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

// portLimit is how long a port of a host may take to answer.
const portLimit = 5 * time.Second

// Diagnosis is what was found.
type Diagnosis struct {
	Host string `json:"host"`
	// Instance is empty for a host that is in no list.
	Instance string `json:"instance,omitempty"`
	User     string `json:"user"`
	Rungs    []Rung `json:"rungs"`
}

// Failed reports whether a rung has failed.
func (d Diagnosis) Failed() bool {
	for _, rung := range d.Rungs {
		if rung.Outcome == Failed {
			return true
		}
	}
	return false
}

// Subject is the host that is looked at.
type Subject struct {
	Target remote.Target
	// Ours says that an agent of ours has closed its folder on the host, and Node that the host is a node.
	Ours, Node bool
	// Cluster are the facts of the cluster; nil when they are not known, and Unknown says why.
	Cluster *nodespec.Cluster
	Unknown string
}

// Climber looks at hosts.
type Climber struct {
	Visitor visit.Visitor
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Clock   clock.PassiveClock
	Line    support.ReleaseLine
	Payload *payload.Payload
}

// Diagnose looks at a host. It fails if the visit was interrupted or has left something behind; what is wrong
// with the host is in the diagnosis.
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

// lacks returns how many bytes of the payload a host lacks.
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

// ports tries those that a node serves, all at once.
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
