// Package hostjobs runs jobs on hosts, one job per instance at a time, outside the reconcile loop. A job connects
// with the pinned host key, installs the agent, sends NodeSpecs and payload files, or runs agent commands. The
// package reads and writes no API objects. Other packages decide on the work.
package hostjobs

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/metrics"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// Causes that end a job before its work is done.
var (
	// ErrGone means that the operator no longer manages the host, which is deleted with its Machine.
	ErrGone = errors.New("the Machine of the host no longer belongs to the cluster")
	// ErrSuperseded means that the desired state of the host has changed.
	ErrSuperseded = errors.New("the desired state of the host has changed")
	// ErrTimedOut means that the job exceeded its limit.
	ErrTimedOut = errors.New("the job on the host exceeded its time limit and was stopped")
)

// minSlowFailure is the minimum duration of a failed job for its host to count as slow. A refused connection takes
// milliseconds.
const minSlowFailure = 5 * time.Second

// shutdownTimeout is the time that jobs have to end when the operator stops. Then their connections are closed.
const shutdownTimeout = 10 * time.Second

// Runner runs the jobs. It is a manager.Runnable that needs leader election.
type Runner struct {
	hosts   *remote.Pool
	payload *payload.Payload
	clock   clock.WithTicker
	slots   slots
	started chan struct{} // closed when jobs may start

	mu      sync.Mutex
	base    context.Context // of all jobs; nil before the start
	enqueue func(types.NamespacedName)
	records map[types.NamespacedName]*record
	jobs    sync.WaitGroup
	begun   int
}

// NewRunner returns a Runner that connects with a pool and sends the files of a payload.
func NewRunner(hosts *remote.Pool, files *payload.Payload, clock clock.WithTicker) *Runner {
	return &Runner{
		hosts: hosts, payload: files, clock: clock, slots: newSlots(), started: make(chan struct{}),
		enqueue: func(types.NamespacedName) {}, records: map[types.NamespacedName]*record{},
	}
}

// record is the state of the runner for the host of an instance.
type record struct {
	uid     types.UID
	known   Known
	running *run
	ended   *outcome
	// failed is true if the last job failed after holding its slot for more than minSlowFailure. A connection alone
	// does not reset failed.
	failed bool
}

// run is a running job.
type run struct {
	job      Job
	desired  DesiredHost
	began    time.Time
	entered  time.Time // when the job acquired its slot; zero before
	cancel   context.CancelCauseFunc
	step     Step
	shown    time.Time // when a reconcile was last requested for a step
	changing bool
	stopped  error
}

// outcome is the result of a job, for the next reconcile that is committed.
type outcome struct {
	key    Key
	answer any
	err    error
	// connection is the connection that the job used, which may have ended with the job; nil for none.
	connection *remote.Connection
	at         time.Time
}

// outcomeTTL is the maximum time that the outcome of a job is kept for the phase that requested the job.
const outcomeTTL = time.Minute

// Start allows jobs to start. It returns when the operator stops and all jobs have ended.
func (r *Runner) Start(ctx context.Context) error {
	r.mu.Lock()
	r.base = ctx
	r.mu.Unlock()
	close(r.started)
	<-ctx.Done()
	ended := make(chan struct{})
	go func() {
		r.jobs.Wait()
		close(ended)
	}()
	limit := r.clock.NewTimer(shutdownTimeout)
	defer limit.Stop()
	select {
	case <-ended:
	case <-limit.C():
		r.hosts.CloseAll()
		<-ended
	}
	return nil
}

// NeedLeaderElection makes jobs end before the lease is released.
func (*Runner) NeedLeaderElection() bool { return true }

// Started is closed when jobs may start.
func (r *Runner) Started() <-chan struct{} { return r.started }

// OnEnd sets the function that requests a reconcile of an instance when its job ends or progresses. The function
// must not block.
func (r *Runner) OnEnd(wake func(types.NamespacedName)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enqueue = wake
}

// HostFor returns the host of an instance, for one reconcile. It first stops a job for a former instance of the same
// name.
func (r *Runner) HostFor(instance *v1alpha1.WindowsInstance) *Host {
	r.mu.Lock()
	defer r.mu.Unlock()
	host := &Host{runner: r, name: nameOf(instance), desired: DesiredHostOf(instance)}
	record := r.records[host.name]
	if record == nil {
		return host
	}
	if record.uid != instance.UID {
		r.forgetRecord(host.name, record)
		if record.running == nil {
			return host
		}
	}
	if running := record.running; running != nil {
		host.running = &Progress{Key: running.job.Key, Desired: running.desired, Show: running.job.Show, Began: running.began,
			Step: running.step, Stopped: running.stopped}
	}
	host.Known, host.ended = record.known, record.ended
	if c := host.Connection; c != nil && !c.IsAlive() && (host.ended == nil || host.ended.connection != c) {
		host.ForgetHost()
	}
	return host
}

// Commit stores the knowledge of a host from a reconcile, and starts the requested job. It returns false if the
// job must be requested again. The operator may be stopping, may not be the leader yet, or the reconcile may not
// have used the outcome of the last change.
func (r *Runner) Commit(ctx context.Context, instance *v1alpha1.WindowsInstance, host *Host) bool {
	if host.close {
		r.hosts.Close(instance.Name)
	}
	keeps := host.shouldKeepOutcome(r.clock.Now())
	if c := host.Connection; c != nil && !c.IsAlive() && (!keeps || host.ended.connection != c) {
		host.ForgetHost()
	} else if c != nil {
		r.hosts.Touch(c)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.records[host.name]
	if known == nil {
		if host.requested == nil && host.isEmpty() {
			return true
		}
		known = &record{uid: instance.UID}
		r.records[host.name] = known
	}
	if known.uid != instance.UID || known.running != nil {
		return host.requested == nil
	}
	known.known, known.ended = host.Known, nil
	switch ended := host.ended; {
	case ended == nil || host.used:
	case keeps:
		known.ended = ended
	case ended.key.Kind.isHostChange():
		known.known.ForgetState()
		if host.requested != nil && host.Facts != nil {
			return false
		}
	}
	if host.requested == nil {
		if known.known.isEmpty() && known.ended == nil && !known.failed {
			delete(r.records, host.name)
		}
		return true
	}
	if r.base == nil || r.base.Err() != nil {
		return false
	}
	base := log.IntoContext(r.base, log.FromContext(ctx).WithValues("job", string(host.requested.Kind)))
	running, cancel := context.WithCancelCause(base)
	known.running = &run{job: *host.requested, desired: DesiredHostOf(instance), began: r.clock.Now(), cancel: cancel,
		step: Step{Name: host.requested.Show.Step}}
	r.begun++
	r.jobs.Go(func() { r.runJob(running, host.name, known, known.running) })
	return true
}

// runJob runs a job, and requests a reconcile of the instance.
func (r *Runner) runJob(ctx context.Context, name types.NamespacedName, record *record, run *run) {
	h := &Handle{runner: r, name: name, run: run, class: classOf(run, record)}
	silent := func() {}
	if quiet := run.job.Show.StatusDelay; quiet > 0 { // after this delay, the status shows the job
		silent = callAfter(r.clock, quiet, func() { r.Trigger(name) })
	}
	answer, err := r.runWithTimeout(ctx, h)
	silent()
	r.mu.Lock()
	entered := run.entered
	r.mu.Unlock()
	took := time.Duration(0)
	if !entered.IsZero() {
		took = r.clock.Since(entered)
	}
	metrics.JobDuration.Of(string(run.job.Kind)).Observe(took.Seconds())
	run.cancel(nil)
	r.mu.Lock()
	if record.uid == "" { // the next job starts only after the close
		r.mu.Unlock()
		r.hosts.Close(name.Name)
		r.mu.Lock()
	}
	record.running = nil
	if run.stopped != nil || errors.Is(err, errStale) { // the effect of the job on the host is unknown
		record.known.ForgetState()
	} else {
		record.ended = &outcome{key: run.job.Key, answer: answer, err: err, connection: run.job.connection, at: r.clock.Now()}
		if err != nil || run.job.Kind != KindConnect { // a host that accepts a connection may still stall
			record.failed = err != nil && took > minSlowFailure
		}
	}
	if record.uid == "" {
		delete(r.records, name)
	}
	r.mu.Unlock()
	r.Trigger(name)
}

// Trigger requests a reconcile of an instance.
func (r *Runner) Trigger(name types.NamespacedName) {
	r.mu.Lock()
	wake := r.enqueue
	r.mu.Unlock()
	wake(name)
}

// runWithTimeout runs the function of a job within its limits. A panic is returned as an error.
func (r *Runner) runWithTimeout(ctx context.Context, h *Handle) (answer any, err error) {
	defer func() {
		if p := recover(); p != nil {
			stack := debug.Stack()
			if elsewhere, ok := p.(*remote.Panic); ok {
				p, stack = elsewhere.Value, elsewhere.Stack
			}
			log.FromContext(ctx).Error(fmt.Errorf("panic: %v", p), "a job has failed", "stack", string(stack))
			answer, err = nil, fmt.Errorf("internal error of the operator, see its log: %v", p)
		}
	}()
	leave, err := r.slots.acquireForJob(ctx, h, r.clock)
	if err != nil {
		return nil, err
	}
	defer leave()
	r.mu.Lock()
	h.run.entered = r.clock.Now()
	r.mu.Unlock()
	if limit := h.run.job.Timeout; h.run.job.Kind.isOnHost() {
		defer callAfter(r.clock, limit, func() { h.run.cancel(ErrTimedOut) })()
	} else { // The API server and name servers use the real clock.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, ErrTimedOut)
		defer cancel()
	}
	answer, err = h.run.job.run(ctx, h)
	if err != nil && errors.Is(context.Cause(ctx), ErrTimedOut) {
		r.hosts.Close(h.name.Name)
		err = fmt.Errorf("%w: %w", ErrTimedOut, err)
	}
	return answer, err
}

// MaxOverdue returns how far the most overdue job exceeds its limit; zero if no job does.
func (r *Runner) MaxOverdue() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var oldest time.Duration
	for _, record := range r.records {
		if run := record.running; run != nil && !run.entered.IsZero() {
			oldest = max(oldest, r.clock.Since(run.entered)-run.job.Timeout)
		}
	}
	return oldest
}

// CountStarted returns the number of jobs started so far.
func (r *Runner) CountStarted() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun
}

// CountRunning returns the number of running jobs.
func (r *Runner) CountRunning() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, record := range r.records {
		if record.running != nil {
			n++
		}
	}
	return n
}

func nameOf(instance *v1alpha1.WindowsInstance) types.NamespacedName {
	return types.NamespacedName{Namespace: instance.Namespace, Name: instance.Name}
}
