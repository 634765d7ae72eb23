package recorder_test

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/internal/controller/recorder"
)

func TestOnce_StateReportedOnce(t *testing.T) {
	var once recorder.Once[string]
	for _, step := range []struct {
		name, state string // without a state, the subject is absent from the round
		keep        bool
		want        bool
	}{
		{"a first state", "cordoned", false, true},
		{"the same state", "cordoned", false, false},
		{"another state", "drained", false, true},
		{"an absent subject is forgotten", "", false, false},
		{"the same state after the absence", "drained", false, true},
		{"an absent subject that is kept", "", true, false},
		{"the same state after that", "drained", false, false},
	} {
		once.Begin()
		got := false
		if step.keep {
			once.Keep("node")
		}
		if step.state != "" {
			got = once.IsNew("node", step.state)
		}
		if once.End(); got != step.want {
			t.Errorf("%s: new is %t", step.name, got)
		}
	}
	once.Forget("node")
	if once.Last("node") != "" || !once.IsNew("node", "drained") {
		t.Error("a forgotten report is not made again")
	}
}

func TestOnce_FailedRoundKeepsStates(t *testing.T) {
	var once recorder.Once[string]
	once.Begin()
	once.IsNew("node", "cordoned")
	once.End()
	once.Begin() // an error interrupts this round
	once.Begin()
	if once.IsNew("node", "cordoned") {
		t.Error("the state is new")
	}
	once.End()
}

func TestOperatorState_EachChangeIsOneEvent(t *testing.T) {
	isDown, to := false, events.NewFakeRecorder(10)
	live := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if isDown {
				return errors.New("no answer")
			}
			return c.Get(ctx, key, o, options...)
		},
	}).Build()
	var state recorder.OperatorState
	emit := func(reason string, isGood bool) error {
		return state.Emit(t.Context(), live, "wmco", to, reason, isGood, func(operator *appsv1.Deployment) recorder.Event {
			return recorder.Warning(operator, nil, reason, "Check", "It is so.")
		})
	}
	for _, step := range []struct {
		name, reason string
		isDown       bool
		want         int
	}{
		{"a good state at the start", "Good", false, 0},
		{"a fault while the API server is unavailable", "Bad", true, 0},
		{"the same fault afterwards", "Bad", false, 1},
		{"the fault lasts", "Bad", false, 0},
		{"another fault", "Worse", false, 1},
		{"the end of the fault", "Good", false, 1},
		{"it stays good", "Good", false, 0},
	} {
		isDown = step.isDown
		if err := emit(step.reason, step.reason == "Good"); (err != nil) != isDown {
			t.Errorf("%s: error %v", step.name, err)
		}
		if got := len(to.Events); got != step.want {
			t.Errorf("%s: %d events", step.name, got)
		}
		for len(to.Events) > 0 {
			<-to.Events
		}
	}
}
