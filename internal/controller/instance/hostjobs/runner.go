// Package hostjobs works on hosts, one job per instance at a time, outside of the reconcile loop: it connects with the pinned
// host key, installs the agent, sends NodeSpecs and payload files, and runs the agent's commands. It reads and writes no object
// of the API. Other packages decide on the work.
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
	"github.com/windows-machine-config/wmco/internal/controller/metric"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// Causes that end a job before its work is done.
var (
	// ErrGone means that the host is no longer the operator's: it leaves with its Machine.
	ErrGone = errors.New("the host leaves the cluster with its Machine")
	// ErrSuperseded means that something else is wanted of the host.
	ErrSuperseded = errors.New("something else is wanted of the host")
	// ErrTimedOut means that the job has reached its limit.
	ErrTimedOut = errors.New("the operator worked on the host without finishing, and stopped")
)

// slowFailure is how long a job that fails may take before its host counts as slow. A refused connection takes milliseconds.
const slowFailure = 5 * time.Second

// endLimit is how long jobs may take to end when the operator ends. Then their connections are closed.
const endLimit = 10 * time.Second

// Runner runs the jobs. It is a manager.Runnable that needs leader election.
type Runner struct {
	hosts   *remote.Pool
	payload *payload.Payload
	clock   clock.WithTicker
	slots   slots
	started chan struct{} // closed when jobs may begin

	mu      sync.Mutex
	base    context.Context // of all jobs; nil before the start
	wake    func(types.NamespacedName)
	records map[types.NamespacedName]*record
	jobs    sync.WaitGroup
	begun   int
}

// NewRunner returns a Runner that makes connections with a pool, and sends files of a payload.
func NewRunner(hosts *remote.Pool, files *payload.Payload, clock clock.WithTicker) *Runner {
	return &Runner{
		hosts: hosts, payload: files, clock: clock, slots: newSlots(), started: make(chan struct{}),
		wake: func(types.NamespacedName) {}, records: map[types.NamespacedName]*record{},
	}
}

// record is what the runner has of an instance's host.
type record struct {
	uid     types.UID
	known   Known
	running *run
	ended   *outcome
	// failed is true if the last job has failed, and has held its slot for long before. A connection alone is no success.
	failed bool
}

// run is a running job.
type run struct {
	job      Job
	wanted   Wanted
	began    time.Time
	entered  time.Time // when the job had its slot; zero before
	cancel   context.CancelCauseFunc
	step     Step
	shown    time.Time // when a reconcile was requested for a step
	changing bool
	stopped  error
}

// outcome is the end of a job, for the next reconcile that is committed.
type outcome struct {
	key    Key
	answer any
	err    error
	// over is the connection that the work was done over, which may have ended with it; nil for none.
	over *remote.Connection
	at   time.Time
}

// outcomeLife is how long the outcome of a job is kept for a reconcile that gets as far as the phase that has requested the job.
const outcomeLife = time.Minute

// Start lets jobs begin. It returns when the operator ends and all jobs have ended.
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
	limit := r.clock.NewTimer(endLimit)
	defer limit.Stop()
	select {
	case <-ended:
	case <-limit.C():
		r.hosts.CloseAll()
		<-ended
	}
	return nil
}

// NeedLeaderElection makes jobs end before the lease is given up.
func (*Runner) NeedLeaderElection() bool { return true }

// Started is closed when jobs may begin.
func (r *Runner) Started() <-chan struct{} { return r.started }

// OnEnd sets the function that requests a reconcile of an instance whose job has ended, or has progressed. It must not block.
func (r *Runner) OnEnd(wake func(types.NamespacedName)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake = wake
}

// Of returns the host of an instance, for one reconcile. A job for a former instance of the same name is stopped first.
func (r *Runner) Of(instance *v1alpha1.WindowsInstance) *Host {
	r.mu.Lock()
	defer r.mu.Unlock()
	host := &Host{runner: r, name: nameOf(instance), wanted: WantedOf(instance)}
	record := r.records[host.name]
	if record == nil {
		return host
	}
	if record.uid != instance.UID {
		r.forget(host.name, record)
		if record.running == nil {
			return host
		}
	}
	if running := record.running; running != nil {
		host.running = &Progress{Key: running.job.Key, Wanted: running.wanted, Show: running.job.Show, Began: running.began,
			Step: running.step, Stopped: running.stopped}
	}
	host.Known, host.ended = record.known, record.ended
	if c := host.Connection; c != nil && !c.Alive() && (host.ended == nil || host.ended.over != c) {
		host.ForgetHost()
	}
	return host
}

// Commit keeps what a reconcile has learned of a host, and begins the job that it requests. It reports false if the job must be
// requested again: the operator ends, or has not begun to lead, or the reconcile did not learn how the last job has changed the host.
func (r *Runner) Commit(ctx context.Context, instance *v1alpha1.WindowsInstance, host *Host) bool {
	if host.close {
		r.hosts.Close(instance.Name)
	}
	keeps := host.keepsOutcome(r.clock.Now())
	if c := host.Connection; c != nil && !c.Alive() && (!keeps || host.ended.over != c) {
		host.ForgetHost()
	} else if c != nil {
		r.hosts.Touch(c)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.records[host.name]
	if known == nil {
		if host.requested == nil && host.empty() {
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
	case ended.key.Kind.changesHost():
		known.known.ForgetState()
		if host.requested != nil && host.Facts != nil {
			return false
		}
	}
	if host.requested == nil {
		if known.known.empty() && known.ended == nil && !known.failed {
			delete(r.records, host.name)
		}
		return true
	}
	if r.base == nil || r.base.Err() != nil {
		return false
	}
	base := log.IntoContext(r.base, log.FromContext(ctx).WithValues("job", string(host.requested.Kind)))
	running, cancel := context.WithCancelCause(base)
	known.running = &run{job: *host.requested, wanted: WantedOf(instance), began: r.clock.Now(), cancel: cancel,
		step: Step{Name: host.requested.Show.Step}}
	r.begun++
	r.jobs.Go(func() { r.do(running, host.name, known, known.running) })
	return true
}

// do does a job, and has the instance reconciled.
func (r *Runner) do(ctx context.Context, name types.NamespacedName, record *record, run *run) {
	h := &Handle{runner: r, name: name, run: run, class: classOf(run, record)}
	silent := func() {}
	if quiet := run.job.Show.Quiet; quiet > 0 { // from then on the status shows the job
		silent = after(r.clock, quiet, func() { r.Trigger(name) })
	}
	answer, err := r.work(ctx, h)
	silent()
	r.mu.Lock()
	entered := run.entered
	r.mu.Unlock()
	took := time.Duration(0)
	if !entered.IsZero() {
		took = r.clock.Since(entered)
	}
	metric.JobDuration.Of(string(run.job.Kind)).Observe(took.Seconds())
	run.cancel(nil)
	r.mu.Lock()
	if record.uid == "" { // no other job begins before that
		r.mu.Unlock()
		r.hosts.Close(name.Name)
		r.mu.Lock()
	}
	record.running = nil
	if run.stopped != nil || errors.Is(err, errStale) { // what the job has done to the host is not known
		record.known.ForgetState()
	} else {
		record.ended = &outcome{key: run.job.Key, answer: answer, err: err, over: run.job.over, at: r.clock.Now()}
		if err != nil || run.job.Kind != KindConnect { // a host that accepts a connection may stall then
			record.failed = err != nil && took > slowFailure
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
	wake := r.wake
	r.mu.Unlock()
	wake(name)
}

// work runs the function of a job within its limits. A panic is a failure.
func (r *Runner) work(ctx context.Context, h *Handle) (answer any, err error) {
	defer func() {
		if p := recover(); p != nil {
			stack := debug.Stack()
			if elsewhere, ok := p.(*remote.Panic); ok {
				p, stack = elsewhere.Value, elsewhere.Stack
			}
			log.FromContext(ctx).Error(fmt.Errorf("panic: %v", p), "a job has failed", "stack", string(stack))
			answer, err = nil, fmt.Errorf("an error in the operator, whose log has the details: %v", p)
		}
	}()
	leave, err := r.slots.enter(ctx, h, r.clock)
	if err != nil {
		return nil, err
	}
	defer leave()
	r.mu.Lock()
	h.run.entered = r.clock.Now()
	r.mu.Unlock()
	if limit := h.run.job.Limit; h.run.job.Kind.onHost() {
		defer after(r.clock, limit, func() { h.run.cancel(ErrTimedOut) })()
	} else { // The API server's time and that of name servers is the real one.
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

// Oldest returns how long the oldest job has gone on beyond its limit; zero if none has.
func (r *Runner) Oldest() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var oldest time.Duration
	for _, record := range r.records {
		if run := record.running; run != nil && !run.entered.IsZero() {
			oldest = max(oldest, r.clock.Since(run.entered)-run.job.Limit)
		}
	}
	return oldest
}

// Begun returns how many jobs were begun so far.
func (r *Runner) Begun() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun
}

// Running returns the number of jobs.
func (r *Runner) Running() int {
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
