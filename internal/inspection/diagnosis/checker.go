// Package diagnosis diagnoses why a host is not a node, in a series of checks from the DNS name to the ports. The
// host may be unlisted. The package changes nothing.
package diagnosis

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/inspection/hostsession"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// portTimeout is the timeout for a connection to a port of a host.
const portTimeout = 5 * time.Second

// Diagnosis is the result of all checks.
type Diagnosis struct {
	Host string `json:"host"`
	// Instance is empty for an unlisted host.
	Instance string  `json:"instance,omitempty"`
	User     string  `json:"user"`
	Checks   []Check `json:"checks"`
}

// HasFailed reports whether a check has failed.
func (d Diagnosis) HasFailed() bool {
	for _, rung := range d.Checks {
		if rung.Outcome == Failed {
			return true
		}
	}
	return false
}

// Subject is the host to diagnose.
type Subject struct {
	Target remote.Target
	// HasOperatorAgent means that an agent of the operator has restricted its directory on the host, and Node that
	// the host is a node.
	HasOperatorAgent, Node bool
	// Cluster holds the facts of the cluster; nil if unknown, and Unknown contains the reason.
	Cluster *nodespec.Cluster
	Unknown string
}

// Checker diagnoses hosts.
type Checker struct {
	Connector hostsession.Connector
	Dial      func(ctx context.Context, network, address string) (net.Conn, error)
	Clock     clock.PassiveClock
	Line      support.ReleaseLine
	Payload   *payload.Payload
}

// Diagnose diagnoses a host. It returns an error if the visit was interrupted or has left files behind; the
// faults of the host are in the diagnosis.
func (c Checker) Diagnose(ctx context.Context, subject Subject) (d Diagnosis, err error) {
	e := Evidence{
		Address: subject.Target.Address, User: subject.Target.User, Pinned: subject.Target.HostKey != nil,
		Cluster: subject.Cluster, Unknown: subject.Unknown, Node: subject.Node,
	}
	err = c.gatherEvidence(ctx, subject, &e)
	d = Diagnosis{Host: subject.Target.Address, Instance: subject.Target.Instance, User: subject.Target.User}
	if ctx.Err() != nil {
		return d, errors.Join(context.Cause(ctx), err)
	}
	d.Checks = EvaluateChecks(c.Line, e)
	return d, err
}

// gatherEvidence gathers the evidence.
func (c Checker) gatherEvidence(ctx context.Context, subject Subject, e *Evidence) (err error) {
	var stay *hostsession.Session
	if stay, e.Failure = c.Connector.Connect(ctx, subject.Target); e.Failure != nil {
		return nil
	}
	defer func() { err = errors.Join(err, stay.Finish(ctx)) }()
	key := stay.HostKey()
	e.HostKey, e.LastReachedAddress = &key, stay.Address()
	if e.Failure = stay.EnsureAgent(ctx, subject.HasOperatorAgent); e.Failure != nil {
		return nil
	}
	e.AgentInstalled, e.AgentCopied = true, stay.HasCopiedAgent()
	var arguments []string
	if subject.Cluster != nil {
		arguments = hostjobs.APIServerArguments(*subject.Cluster)
	}
	asked := c.Clock.Now()
	result, failure := stay.FetchFacts(ctx, arguments...)
	if e.Failure = failure; failure != nil {
		return nil
	}
	e.Facts, e.Clock = result.Facts, support.ClockReading{Host: result.Facts.Time, RequestedAt: asked, RespondedAt: c.Clock.Now()}
	e.MissingBytes = c.missingPayloadBytes(subject, result.Facts.Payload)
	e.OpenPorts = c.probePorts(ctx, e.LastReachedAddress)
	return nil
}

// missingPayloadBytes returns the number of payload bytes missing on a host.
func (c Checker) missingPayloadBytes(subject Subject, present map[string]string) int64 {
	target := payload.Target{}
	if subject.Cluster != nil {
		target = payload.Target{Platform: subject.Cluster.Platform, Kubernetes: c.Line.KubernetesFor(subject.Cluster.Version)}
	}
	total := int64(0)
	for _, component := range c.Payload.Components(target) {
		for _, file := range component.Files {
			if _, there := present[file.SHA256]; !there {
				total += file.Size
			}
		}
	}
	return total
}

// probePorts connects to all ports that a node serves, concurrently.
func (c Checker) probePorts(ctx context.Context, address string) map[int]bool {
	ctx, cancel := context.WithTimeout(ctx, portTimeout)
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
