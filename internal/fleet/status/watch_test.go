package status

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/cmdutil"
	"github.com/windows-machine-config/wmco/internal/fleet"
)

// scene is the command with a cluster that can simulate an outage of its API server.
type scene struct {
	*testing.T
	*command
	clock *clocktesting.FakeClock
	api   client.Client

	mu          sync.Mutex
	unavailable bool
	out         bytes.Buffer
}

// Write records the output of the command.
func (s *scene) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

func newScene(t *testing.T, instances ...fleet.Instance) *scene {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s := &scene{T: t, clock: clocktesting.NewFakeClock(now)}
	objects := fake.NewClientBuilder().WithScheme(scheme)
	for i := range instances {
		objects.WithObjects(&instances[i].WindowsInstance)
	}
	s.api = interceptor.NewClient(objects.Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.unavailable {
				return errors.New("connection refused")
			}
			return c.List(ctx, list, o...)
		}})
	a := cmdutil.New(genericiooptions.IOStreams{Out: s, ErrOut: s}, s.clock)
	*a.Flags.Namespace = "wmco"
	s.command = &command{Access: a, print: genericclioptions.NewPrintFlags(""), timeout: time.Minute}
	return s
}

func (s *scene) setUnavailable(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unavailable = away
}

// stepUntil steps the clock until the output contains some words.
func (s *scene) stepUntil(words string) {
	s.Helper()
	has := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return strings.Contains(s.out.String(), words)
	}
	for deadline := time.Now().Add(10 * time.Second); !has(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("it does not print %q but\n%s", words, s.out.String())
		}
		if s.clock.HasWaiters() {
			s.clock.Step(pollInterval)
		}
	}
}

func TestWatch_ContinuesDuringAPIServerOutage(t *testing.T) {
	s := newScene(t, newReadyInstance(1))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.watchStatus(ctx, s.api, nil) }()
	s.stepUntil("win-1")
	s.setUnavailable(true)
	s.stepUntil("Warning: list WindowsInstances: connection refused")
	s.setUnavailable(false)
	second := newReadyInstance(2)
	if err := s.api.Create(ctx, &second.WindowsInstance); err != nil {
		t.Fatal(err)
	}
	s.stepUntil("win-2")
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("an interrupted watch ends with %v", err)
	}
}

func TestWatch_FailedStartIsError(t *testing.T) {
	s := newScene(t)
	s.setUnavailable(true)
	if err := s.watchStatus(t.Context(), s.api, nil); err == nil {
		t.Error("it has no error")
	}
}

func TestWait_EndsWhenAllMeetCondition(t *testing.T) {
	s := newScene(t, newReadyInstance(1), withFalseCondition(newReadyInstance(2), v1alpha1.ConditionReady, "DrainBlocked", "", ""))
	s.wait = v1alpha1.ConditionReady
	ended := make(chan error, 1)
	go func() { ended <- s.waitForCondition(t.Context(), s.api, nil) }()
	repaired := newReadyInstance(2)
	current := &v1alpha1.WindowsInstance{}
	if err := s.api.Get(t.Context(), client.ObjectKeyFromObject(&repaired.WindowsInstance), current); err != nil {
		t.Fatal(err)
	}
	current.Status = repaired.Status
	if err := s.api.Update(t.Context(), current); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			return
		case <-time.After(time.Millisecond):
			s.clock.Step(pollInterval / 100) // the timeout is much later than the change
		}
	}
}

func TestWait_TimeoutNamesPendingHosts(t *testing.T) {
	s := newScene(t, newReadyInstance(1), withFalseCondition(newReadyInstance(2), v1alpha1.ConditionReady, "DrainBlocked", "", ""))
	s.wait = v1alpha1.ConditionReady
	ended := make(chan error, 1)
	go func() { ended <- s.waitForCondition(t.Context(), s.api, nil) }()
	for {
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "after 1m0s the condition Ready is not True for 1 of 2 hosts: win-2.") {
				t.Error(err)
			}
			return
		case <-time.After(time.Millisecond):
			if s.clock.HasWaiters() {
				s.clock.Step(pollInterval)
			}
		}
	}
}
