package disruption

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/disturbance"
)

// An operator that ends cancels its requests.
func TestWithoutAnAnswerOfTheAPIServerNothingIsDecided(t *testing.T) {
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
			request := disturbance.Request{Instance: "host", Cause: v1alpha1.CauseReboot}
			if decision, err := gate.Acquire(t.Context(), request); decision.Allowed || !errors.Is(err, cause) {
				t.Errorf("it is decided: %+v, %v", decision, err)
			}
		})
	}
}
