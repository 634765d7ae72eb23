package hostjobs

import (
	"errors"

	"k8s.io/apimachinery/pkg/types"
)

// Stop ends the job of an instance. A job that changes the host is interrupted only if the host no longer exists,
// because the agent continues the change in any case. Otherwise the job completes, and its outcome is dropped.
func (r *Runner) Stop(name types.NamespacedName, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if record := r.records[name]; record != nil {
		r.stopJob(name, record, cause)
	}
}

func (r *Runner) stopJob(name types.NamespacedName, record *record, cause error) {
	run := record.running
	if run == nil {
		return
	}
	run.stopped = cause
	switch {
	case errors.Is(cause, ErrGone):
		go r.hosts.Close(name.Name) // blocks until the connection has ended
		run.cancel(cause)
	case !run.changing:
		run.cancel(cause)
	}
}

// Forget drops the record of the host of an instance that no longer exists, and stops its job.
func (r *Runner) Forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if record := r.records[name]; record != nil {
		r.forgetRecord(name, record)
		return
	}
	r.hosts.Close(name.Name)
}

// forgetRecord must be called with r locked. The record and the connection remain until a running job has ended,
// because a change of a listed host is not interrupted.
func (r *Runner) forgetRecord(name types.NamespacedName, record *record) {
	cause := ErrSuperseded
	if record.running != nil && record.running.desired.HasMachine {
		cause = ErrGone
	}
	r.stopJob(name, record, cause)
	if record.running == nil {
		r.hosts.Close(name.Name)
		delete(r.records, name)
		return
	}
	if !record.running.changing {
		go r.hosts.Close(name.Name) // blocks until the connection has ended
	}
	record.uid, record.known, record.ended = "", Known{}, nil
}
