// Package link reaches hosts: it connects with the pinned host key, brings the agent, runs its verbs, and waits for a
// host that restarts. Other packages decide which verbs are run.
package link

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/event"
	"github.com/windows-machine-config/wmco/internal/controller/instance/machines"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/places"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// Link is the operator's way to hosts.
type Link struct {
	Hosts    *remote.Pool
	Client   client.Client // for the key before the present one
	Machines machines.Machines
	Status   status.Writer
	Events   event.Recorder
	Payload  *payload.Payload // has the agent
	Clock    clock.WithTicker
	// Transfers limits how many hosts are sent programs at once.
	Transfers *places.Transfers
	// Jitter returns a number in [0,1).
	Jitter    func() float64
	Namespace string // of the operator
}

// Reach connects to the host, or reuses a connection, and pins its host key at first contact.
func (l *Link) Reach(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
	target, o := l.Target(ctx, s)
	if o != nil {
		return o
	}
	known := l.tellSlow(ctx, s)
	connection, err := l.connect(ctx, s, target)
	known()
	if err != nil {
		s.Session.ForgetHost()
		// What comes with a restart passes with it; another host key does not.
		if o := l.stillRestarting(s); o != nil && !isAnotherHost(err) {
			return o
		}
		s.Unreached = true
		if o := l.awaitUserData(s, err); o != nil {
			return o
		}
		return l.awaitsKey(s, obstacle.Connect(err))
	}
	if s.Session.Connection != connection {
		s.Session.ForgetHost()
		s.Session.Connection = connection
	}
	s.Connection = connection
	l.pinHostKey(s, connection.HostKey(), s.Instance.Status.HostKey == nil)
	s.Pass(v1alpha1.ConditionReachable, "The host answers over SSH with its pinned key and accepts the operator's.")
	if s.Stored.Status.HostKey == nil {
		l.Status.Begin(s, inspect)
	}
	// The pin is written before anything is sent to the host.
	if err := l.Status.Patch(ctx, s); err != nil {
		return obstacle.API(v1alpha1.ConditionReachable, "pin the host key", err)
	}
	return nil
}

// tellAfter is how long a host may take to answer before the status of one of which nothing is known says that it is being
// contacted: most answer at once, and what they are found to be is written then.
const tellAfter = time.Second

// tellSlow tells, while a connection is being made, that this takes its time. It returns what ends that.
func (l *Link) tellSlow(ctx context.Context, s *scope.Scope) (end func()) {
	told, answered, ended := *s, make(chan struct{}), make(chan struct{})
	told.Instance = s.Instance.DeepCopy()
	timer := l.Clock.NewTimer(tellAfter)
	go func() {
		defer close(ended)
		defer timer.Stop()
		select {
		case <-timer.C():
			if err := l.Status.Connecting(ctx, &told, remote.DefaultDialLimit+remote.DefaultHandshakeLimit); err != nil {
				log.FromContext(ctx).Info("it could not be written that a host is being contacted", "error", err.Error())
			}
		case <-answered:
		}
	}()
	return func() {
		close(answered)
		<-ended
		s.Instance, s.Stored = told.Instance, told.Stored
	}
}

// Close ends the connection to the host, and forgets what was learnt over it.
func (l *Link) Close(s *scope.Scope) {
	s.Session.ForgetHost()
	l.Hosts.Close(s.Instance.Name)
}

// LetGo drops the connection to a host that is no longer worked on, and the facts learnt over it.
func (l *Link) LetGo(s *scope.Scope) {
	if s.Connection != nil {
		l.Hosts.Release(s.Connection)
		s.Connection = nil
	}
	l.Close(s)
}

// BeginTransfer waits until the host may be sent programs, and returns what ends that. A host whose connection ends
// meanwhile leaves the line.
func (l *Link) BeginTransfer(ctx context.Context, s *scope.Scope, step string) (end func(), err error) {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	go func(connection *remote.Connection) {
		select {
		case <-connection.Done():
			leave(connection.Err())
		case <-ctx.Done():
		}
	}(s.Connection)
	return l.Transfers.Begin(ctx, l.Clock, &s.Session.Order, func() {
		l.Status.Step(ctx, s, step, "waits until other hosts have got their programs")
	})
}

// Failed forgets facts of a host that may no longer be true after a failure, and returns the obstacle.
func (l *Link) Failed(s *scope.Scope, condition string, err error) *obstacle.Obstacle {
	s.Session.Spec = ""
	var failure *verb.Failure
	if errors.As(err, &failure) {
		// The agent's facts may have changed with what it did before it failed.
		s.Session.Applied, s.Session.Facts = "", nil
	} else {
		l.Close(s)
	}
	return obstacle.Host(condition, err)
}
