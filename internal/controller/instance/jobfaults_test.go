package instance

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
)

// The operator loses the leadership during a job of each kind. The job ends in time, has no further effects, and the
// next operator continues from the recorded state. R-013
func TestJob_EndsWhenLeadershipIsLost(t *testing.T) {
	for _, job := range blockedJobs() {
		job.run(t, "", func(t *testing.T, s *standstill) { s.losesLeadership(t, job) })
		if job.verb != "" {
			job.run(t, job.verb, func(t *testing.T, s *standstill) { s.losesLeadership(t, job) })
		}
	}
}

func (s *standstill) losesLeadership(t *testing.T, job blockedJob) {
	waits := make(chan struct{}, 1)
	end, ended := s.startLeading(endClock{s.clock, waits})
	s.jobs = s.Jobs
	s.runUntilBlocked()
	end()
	if s.verb == "" {
		<-waits
		s.clock.Step(shutdownTimeout) // an idle connection is then closed
	}
	s.awaitEnd("the end of the job", func() bool {
		select {
		case <-ended:
			return s.jobs.CountRunning() == 0
		default:
			return false
		}
	})
	sent, writes, dials := s.sent.Load(), s.countWrites(), s.countDials()
	s.resume()
	if s.reconcileOnce(); s.Jobs.CountStarted() != s.jobs.CountStarted() || s.jobs.CountRunning() > 0 {
		t.Error("another job has begun")
	}
	s.Hosts.CloseAll()
	if s.sent.Load() != sent || s.countWrites() != writes || s.countDials() != dials {
		t.Errorf("%d bytes were sent to the host after that, and %d requests to the API; it was dialed %d times", s.sent.Load()-sent, s.countWrites()-writes, s.countDials()-dials)
	}
	s.restartOperator()
	s.driveUntil("the end of what was begun", func() bool { return job.isDone(s) })
}

// A job that exceeds its limit ends, the instance reports that, and the work is eventually completed.
func TestJob_EndsAtTimeoutOfKind(t *testing.T) {
	for _, job := range blockedJobs() {
		if job.timeout == 0 {
			continue
		}
		job.run(t, job.verb, func(t *testing.T, s *standstill) {
			s.runUntilBlocked()
			s.clock.Step(job.timeout)
			s.awaitEnd("the end of the job", func() bool { return s.Jobs.CountRunning() == 0 })
			after := s.reconcileOnce()
			instance := s.instanceOrNil()
			if says := slices.ContainsFunc(instance.Status.Conditions, func(c metav1.Condition) bool {
				return c.Status == metav1.ConditionFalse && (c.Reason == v1alpha1.ReasonJobTimedOut || strings.Contains(c.Message, "exceeded its time limit"))
			}); says != (s.kind != hostjobs.KindCommit) || says && (after == 0 || after > maxRetryDelay) {
				t.Errorf("the next look is after %s; the status is %+v", after, instance.Status)
			}
			s.resume()
			s.driveUntil("the end of what was begun", func() bool { return job.isDone(s) })
		})
	}
}

// The object is deleted during a job. The job has no further effects, and leaves nothing behind.
func TestJob_NoEffectAfterInstanceIsDeleted(t *testing.T) {
	for _, job := range blockedJobs() {
		job.run(t, job.verb, func(t *testing.T, s *standstill) {
			s.runUntilBlocked()
			if err := s.Client.Delete(t.Context(), s.instanceOrNil()); err != nil {
				t.Fatal(err)
			}
			s.reconcileOnce()
			verbs, writes, dials := len(s.host.agentCommands()), s.countWrites(), s.countDials()
			if job.changes && s.instance.Spec.Source.Machine == nil {
				if s.Hosts.Len() == 0 {
					t.Error("the change of the host is cut off")
				}
				s.resume()
			}
			s.awaitEnd("the end of the job", func() bool { return s.Jobs.CountRunning() == 0 })
			s.resume()
			s.reconcileOnce()
			if more := s.host.agentCommands()[verbs:]; len(more) > 0 || s.countWrites() != writes || s.countDials() != dials || s.Jobs.CountRunning() > 0 {
				t.Errorf("the host was told to %q, the API had %d writes, the host was dialed %d times, and %d jobs run", more, s.countWrites()-writes, s.countDials()-dials, s.Jobs.CountRunning())
			}
			s.awaitEnd("the end of the connection", func() bool { return s.Hosts.Len() == 0 })
			if s.instanceOrNil() != nil || s.Jobs.HostFor(s.instance).Connection != nil {
				t.Errorf("left is %+v, and what is known of its host: %+v", s.instanceOrNil(), s.Jobs.HostFor(s.instance).Known)
			}
		})
	}
}

// The object is recreated during a job. The former job ends first, and the new instance does not use its outcome.
func TestJob_RecreatedInstanceWaitsForFormerJob(t *testing.T) {
	for _, job := range blockedJobs() {
		job.run(t, job.verb, func(t *testing.T, s *standstill) {
			s.runUntilBlocked()
			former := s.instanceOrNil()
			if err := s.Client.Delete(t.Context(), former); err != nil {
				t.Fatal(err)
			}
			again := listedInstance()
			again.UID = "made-again"
			if err := s.Client.Create(t.Context(), again); err != nil {
				t.Fatal(err)
			}
			s.LookUp = nil
			notCutOff := job.changes && former.Spec.Source.Machine == nil
			begun, dials, verbs := s.Jobs.CountStarted(), s.countDials(), len(s.host.agentCommands())
			for range 3 {
				s.reconcileOnce()
				if !notCutOff {
					break
				}
				if s.Jobs.CountRunning() != 1 || s.Jobs.CountStarted() != begun || s.countDials() != dials {
					t.Fatalf("%d jobs run; beside that of the former instance %d have begun, and %d connections", s.Jobs.CountRunning(), s.Jobs.CountStarted()-begun, s.countDials()-dials)
				}
			}
			if notCutOff {
				s.resume()
			}
			s.awaitEnd("the end of the job", func() bool { return s.Jobs.CountRunning() == 0 })
			s.resume()
			if more := s.host.agentCommands()[verbs:]; len(more) > 0 || s.Hosts.Len() > 0 {
				t.Errorf("the former instance's job has told the host to %q; %d connections are left", more, s.Hosts.Len())
			}
			if now := s.instanceOrNil(); now.UID != again.UID || now.Status.HostKey != nil || now.Status.NodeRef != nil || now.Status.SpecDigest != "" {
				t.Errorf("the next one begins with %+v", now.Status)
			}
			s.instance = s.instanceOrNil()
			s.driveUntil("another connection", func() bool { return s.countDials() > dials })
		})
	}
}

// A job that panics fails only its own instance, which reports the failure and is retried. The work completes
// when the cause no longer exists.
func TestJob_PanicFailsOwnInstance(t *testing.T) {
	x, h, _ := hostToJoin(t, "None")
	panics := true
	x.clientset.PrependReactor("create", "certificatesigningrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
		if panics {
			panic("assignment to entry in nil map")
		}
		return false, nil, nil
	})
	var instance *v1alpha1.WindowsInstance
	var after time.Duration
	for attempt := range 3 {
		instance, after = x.reconcile()
		condition := expectCondition(t, instance, v1alpha1.ConditionJoined, metav1.ConditionFalse, v1alpha1.ReasonAPIRequestFailed)
		if !strings.Contains(condition.Message, "internal error of the operator") || strings.Contains(condition.Message, "goroutine") {
			t.Errorf("it says %q", condition.Message)
		}
		if want := retryDelay(attempt+1, 0); after != want {
			t.Errorf("attempt %d: the next one is after %s, want %s", attempt, after, want)
		}
		x.clock.Step(after)
	}
	if events := x.popEvents(); len(events) != 2 || x.Jobs.CountRunning() > 0 { // the first contact, and one failure
		t.Errorf("%d jobs run; the events are %q", x.Jobs.CountRunning(), events)
	}
	panics = false
	x.joinNode()
	if logins := h.countAccepted(); logins > 2 {
		t.Errorf("%d logins", logins)
	}
}
