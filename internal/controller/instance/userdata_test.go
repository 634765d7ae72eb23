package instance

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/remote"
)

func TestUserData_WaitsForRunningUserData(t *testing.T) {
	refuses := func(x *trial) { x.host.authorizeKeys() }
	closed := func(x *trial) { x.host.switchOff(true) }
	for name, c := range map[string]struct {
		fault          func(*trial)
		waiting, later string
	}{
		"it refuses the key":    {refuses, v1alpha1.ReasonUserDataInProgress, string(remote.ReasonAuthenticationFailed)},
		"its port 22 is closed": {closed, string(remote.ReasonUnreachable), string(remote.ReasonUnreachable)},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t, machineInstance())
			c.fault(x)
			for range 3 {
				instance, after := x.reconcile()
				expectCondition(t, instance, v1alpha1.ConditionReachable, metav1.ConditionFalse, c.waiting)
				if after != minUserDataInterval || !strings.Contains(instance.Status.NextAction, "12:30 UTC") {
					t.Errorf("next look in %s: %s", after, instance.Status.NextAction)
				}
			}
			if events := x.popEvents(); len(events) > 0 {
				t.Errorf("it is reported as a failure: %q", events)
			}
			x.clock.Step(userDataTimeout - time.Second)
			if _, after := x.reconcile(); after != time.Second {
				t.Errorf("next look in %s, a second before the limit", after)
			}
			x.clock.Step(time.Second)
			instance, after := x.reconcile()
			expectCondition(t, instance, v1alpha1.ConditionReachable, metav1.ConditionFalse, c.later)
			if after != minRetryDelay {
				t.Errorf("after the limit, the next look is in %s", after)
			}
		})
	}
}

func TestUserData_RefusedKeyIsFailureWithoutWait(t *testing.T) {
	for name, change := range map[string]func(*trial, *v1alpha1.WindowsInstance){
		"of a host from windows-instances, which has no user data": func(_ *trial, i *v1alpha1.WindowsInstance) {
			i.Spec.Source = v1alpha1.Source{ConfigMapKey: "10.0.128.7"}
		},
		"of a Machine's host that had accepted it before": func(x *trial, i *v1alpha1.WindowsInstance) {
			pinned := x.host.hostKey.PublicKey()
			i.Status.HostKey = &v1alpha1.HostKey{Type: pinned.Type(), Key: encodeKey(pinned)}
		},
		"of a Machine's host that was a node with another key": func(_ *trial, i *v1alpha1.WindowsInstance) {
			i.Status.PublicKeyHash = "another"
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t)
			instance := machineInstance()
			change(x, instance)
			if err := x.Client.Create(t.Context(), instance); err != nil {
				t.Fatal(err)
			}
			x.host.authorizeKeys()
			instance, after := x.reconcile()
			expectCondition(t, instance, v1alpha1.ConditionReachable, metav1.ConditionFalse, string(remote.ReasonAuthenticationFailed))
			if events := x.popEvents(); after != minRetryDelay || len(events) != 1 {
				t.Errorf("next look in %s, events %q", after, events)
			}
		})
	}
}

// runningClock advances at each reading, like a real clock.
type runningClock struct {
	*clocktesting.FakeClock
	readings atomic.Int64
}

const reading = 10 * time.Millisecond

func (c *runningClock) Now() time.Time {
	return c.FakeClock.Now().Add(time.Duration(c.readings.Add(1)) * reading)
}

func (c *runningClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// For controller-runtime, a result without a delay is complete: without an event, the instance would not be
// reconciled again.
func TestUserData_RequeuedIfTimeoutEndsDuringReconcile(t *testing.T) {
	x := newTrial(t, machineInstance())
	clock := &runningClock{FakeClock: x.clock}
	x.Clock = clock
	x.host.authorizeKeys()
	x.clock.Step(userDataTimeout - time.Second)
	for x.clock.Now().Before(noon.Add(userDataTimeout)) {
		clock.readings.Store(0)
		instance, after := x.reconcile()
		if after <= 0 {
			t.Fatalf("not looked at again: %s", instance.Status.Summary)
		}
		x.clock.Step(reading)
	}
}

func TestRequeueResult_PastTimeIsNow(t *testing.T) {
	x := newTrial(t, machineInstance())
	for _, outcome := range []result.Outcome{result.Wait, result.Done} {
		s := &scope.Scope{Instance: machineInstance(), Session: &scope.Session{},
			Result: &result.Result{Outcome: outcome, RequeueAfter: -time.Millisecond}}
		if result := x.requeueResult(t.Context(), status.Recorder{}, s); result.RequeueAfter != time.Second {
			t.Errorf("outcome %v: reconciled again after %s", outcome, result.RequeueAfter)
		}
	}
}

func TestUserData_PollIntervalGrowsWithAge(t *testing.T) {
	for name, c := range map[string]struct {
		age    time.Duration
		jitter float64
		want   time.Duration
	}{
		"a host that was made just now":         {0, 0, 2 * time.Second},
		"a host that starts as a fast one does": {40 * time.Second, 0, 10 * time.Second},
		"a host that takes its time":            {10 * time.Minute, 0, 15 * time.Second},
		"one of many":                           {10 * time.Minute, 0.5, 13500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			if got := userDataPollInterval(c.age, c.jitter); got != c.want {
				t.Errorf("the next look is in %s, want %s", got, c.want)
			}
		})
	}
}

//
func TestFactsArguments_HaveAPIServerURL(t *testing.T) {
	for url, want := range map[string][]string{
		"https://api-int.lab.example.com:6443": {"--api-server", "https://api-int.lab.example.com:6443"},
		"https://api-int.lab.example.com":      {"--api-server", "https://api-int.lab.example.com:443"},
		"https://10.0.0.2:6443/":               {"--api-server", "https://10.0.0.2:6443"},
		"https://[fd02::1]:6443":               nil, // needs quoting in a shell
		"":                                     nil, // a removal does not read the cluster
	} {
		s := scope.New(&v1alpha1.WindowsInstance{}, &scope.Session{}, &hostjobs.Host{}, nil)
		s.Cluster.APIServerInternalURL = url
		if got := factsArguments(s); !slices.Equal(got, want) {
			t.Errorf("of %q: %q", url, got)
		}
	}
}
