package disruption

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

// An operator that ends cancels its requests.
func TestGate_NoDecisionWithoutAPIResponse(t *testing.T) {
	for name, cause := range map[string]error{"a request is canceled": context.Canceled, "a request takes too long": context.DeadlineExceeded} {
		t.Run(name, func(t *testing.T) {
			unanswered := fmt.Errorf("read the policy: %w", cause)
			api := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return unanswered
				},
			})
			clock := clocktesting.NewFakePassiveClock(time.Now())
			gate := NewGate(Options{Client: api, Live: api, Namespace: "wmco", Events: events.NewFakeRecorder(1), Clock: clock})
			reconciler := &Reconciler{Gate: gate, Clock: clocktesting.NewFakeClock(clock.Now())}
			if _, err := reconciler.Reconcile(t.Context(), ctrl.Request{}); !errors.Is(err, cause) {
				t.Errorf("the policy's status is written: %v", err)
			}
			request := disruptionpolicy.Request{Instance: "host", Cause: v1alpha1.CauseReboot}
			if decision, err := gate.Acquire(t.Context(), request); decision.Allowed || !errors.Is(err, cause) {
				t.Errorf("it is decided: %+v, %v", decision, err)
			}
		})
	}
}

// newUnresponsiveAPI returns a client that never responds to a request for the policy.
func newUnresponsiveAPI(requests chan<- struct{}) client.WithWatch {
	return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			requests <- struct{}{}
			<-ctx.Done()
			return context.Cause(ctx)
		},
	})
}

func TestGate_UnresponsiveAPIBlocksNoOtherReconcile(t *testing.T) {
	request := disruptionpolicy.Request{Instance: "host", Cause: v1alpha1.CauseReboot}
	gateOf := func(requests chan<- struct{}) *PolicyGate {
		known := fake.NewClientBuilder().Build()
		return NewGate(Options{Client: known, Live: newUnresponsiveAPI(requests), Namespace: "wmco", Events: events.NewFakeRecorder(1),
			Clock: clocktesting.NewFakePassiveClock(time.Now())})
	}
	t.Run("a decision ends after 30 s", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			gate, begin := gateOf(make(chan struct{}, 100)), time.Now()
			_, err := gate.Acquire(t.Context(), request)
			if elapsed := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || elapsed != decisionTimeout {
				t.Errorf("after %s: %v", elapsed, err)
			}
			if _, err := gate.reviewPolicy(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the review: %v", err)
			}
		})
	})
	t.Run("a pass that has been canceled does not wait for another decision", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			requests := make(chan struct{}, 100)
			gate := gateOf(requests)
			go func() { _, _ = gate.Acquire(t.Context(), request) }()
			<-requests
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			begin := time.Now()
			_, acquireErr := gate.Acquire(ctx, request)
			_, reviewErr := gate.reviewPolicy(ctx)
			if elapsed := time.Since(begin); elapsed != 0 || !errors.Is(acquireErr, context.Canceled) || !errors.Is(reviewErr, context.Canceled) {
				t.Errorf("after %s: %v, %v", elapsed, acquireErr, reviewErr)
			}
		})
	})
}
