package robustness

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/faultproxy"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// election is short enough to be lost when the API server is cut off.
var election = operator.Election{Lease: 8 * time.Second, RenewDeadline: 6 * time.Second, Retry: time.Second}

// startOperator starts one more operator.
func (l *lab) startOperator() error {
	l.started++
	o, err := l.RunOperator(l.through, testenv.WithRelease(l.desiredRelease()), func(c *operator.Config) {
		c.Debug, c.LeaderElection, c.Election = true, l.shape.Elects, election
		c.Dial = l.connections.wrapDial(l.started, c.Dial)
	})
	if err == nil {
		l.operators = append(l.operators, o)
	}
	return err
}

// startIfNone starts an operator unless another is running.
func (l *lab) startIfNone(context.Context) error {
	if len(l.operators) > 0 {
		return nil
	}
	return l.startOperator()
}

// killOperators kills all running operators.
func (l *lab) killOperators() {
	for _, o := range l.operators {
		o.Kill()
	}
	l.operators = nil
}

// stopOperators stops all running operators and waits for their end.
func (l *lab) stopOperators() {
	for _, o := range l.operators {
		_ = o.Stop() // may have failed before, or without an API server
	}
	l.operators = nil
}

// reapOperators restarts an operator that has exited by itself, as a kubelet does with a container.
func (l *lab) reapOperators() error {
	running := len(l.operators)
	l.operators = slices.DeleteFunc(l.operators, func(o *testenv.Operator) bool {
		select {
		case <-o.Done():
			return true
		default:
			return false
		}
	})
	if ended := running - len(l.operators); ended > 0 && len(l.operators) == 0 {
		l.options.Progress("the operator has ended by itself, and starts again")
		return l.startOperator()
	}
	return nil
}

func (l *lab) killOperator(context.Context, Action) (func(context.Context) error, error) {
	l.killOperators()
	return l.startIfNone, nil
}

func (l *lab) stopOperator(context.Context, Action) (func(context.Context) error, error) {
	l.stopOperators()
	return l.startIfNone, nil
}

// installRelease replaces the operator with another release, as a Deployment with the strategy Recreate does.
func (l *lab) installRelease(_ context.Context, a Action) (func(context.Context) error, error) {
	if a.Number >= len(l.options.Releases) {
		return nil, nil
	}
	l.model.Apply(a)
	l.stopOperators()
	return nil, l.startOperator()
}

// startSecondOperator starts another operator, and kills the first or the second operator at the end.
func (l *lab) startSecondOperator(_ context.Context, a Action) (func(context.Context) error, error) {
	if len(l.operators) != 1 {
		return nil, nil
	}
	if err := l.startOperator(); err != nil {
		return nil, err
	}
	killed := l.operators[a.Number]
	return func(ctx context.Context) error {
		killed.Kill()
		// It may have been killed before, together with the other operator, or the other operator has exited by
		// itself.
		if at := slices.Index(l.operators, killed); at >= 0 {
			l.operators = slices.Delete(l.operators, at, at+1)
			return l.startIfNone(ctx)
		}
		return nil
	}, nil
}

// recordRevision records the current revision of the API server's store.
func (l *lab) recordRevision(ctx context.Context) error {
	var some corev1.ConfigMapList
	if err := l.Client.List(ctx, &some, client.InNamespace(l.Namespace()), client.Limit(1)); err != nil {
		return err
	}
	l.revisions = append(l.revisions, some.ResourceVersion)
	return nil
}

// staleStart makes the operator travel in time, as Sieve does (https://github.com/sieve-project/sieve): after a
// restart the operator reads from an API server that lags behind the previous one.
func (l *lab) staleStart(_ context.Context, a Action) (func(context.Context) error, error) {
	at := l.revisions[max(0, len(l.revisions)-1-a.Number)]
	l.killOperators()
	remove := l.proxy.Add(a.Resource, faultproxy.Fault{ListsAt: at, Hold: true})
	return func(context.Context) error { remove(); return nil }, l.startOperator()
}
