package recorder

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Once records the last reported state of each subject, so that a controller emits an event once. The next
// event is due when the state differs, or after the subject was absent from a round. The zero value is ready to
// use. Only one goroutine may use it.
type Once[S comparable] struct {
	reported map[S]string
	round    map[S]bool
}

// IsNew reports whether the state differs from the last reported state of the subject, and records the state.
func (o *Once[S]) IsNew(subject S, state string) bool {
	last, known := o.reported[subject]
	if o.reported == nil {
		o.reported, o.round = map[S]string{}, map[S]bool{}
	}
	o.reported[subject], o.round[subject] = state, true
	return !known || last != state
}

// Last returns the last reported state; empty for none.
func (o *Once[S]) Last(subject S) string { return o.reported[subject] }

// Forget deletes the record of a report that failed.
func (o *Once[S]) Forget(subject S) { delete(o.reported, subject) }

// Keep keeps the last report of a subject after this round.
func (o *Once[S]) Keep(subject S) {
	if state, known := o.reported[subject]; known {
		o.IsNew(subject, state)
	}
}

// Begin begins a round. End deletes the records of all subjects that were neither reported nor kept in the round.
func (o *Once[S]) Begin() { clear(o.round) }

// End ends the round.
func (o *Once[S]) End() {
	for subject := range o.reported {
		if !o.round[subject] {
			delete(o.reported, subject)
		}
	}
}

// OperatorState records the last state of the operator that was reported by an event on its Deployment. The
// zero value is ready to use: a good initial state is not reported.
type OperatorState struct{ reported string }

// Emit emits an event if the state differs from the last reported state. live reads the Deployment.
func (o *OperatorState) Emit(ctx context.Context, live client.Reader, namespace string, to events.EventRecorder,
	state string, isGood bool, about func(*appsv1.Deployment) Event) error {
	if state == o.reported || isGood && o.reported == "" {
		return nil
	}
	deployment, err := Operator(ctx, live, namespace)
	if err != nil {
		return err
	}
	o.reported = state
	e := about(deployment)
	log.FromContext(ctx).Info("state of the operator changed", "reason", e.reason, "message", e.Message)
	Emit(to, e)
	return nil
}
