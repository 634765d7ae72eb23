package hostjobs

import (
	"errors"

	"k8s.io/apimachinery/pkg/types"
)

// Stop ends the job of an instance. Work that changes the host is cut off only if the host is gone: the agent would go on
// with it anyway. Otherwise it goes on to its end, and its outcome is dropped.
func (r *Runner) Stop(name types.NamespacedName, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if record := r.records[name]; record != nil {
		r.stop(name, record, cause)
	}
}

func (r *Runner) stop(name types.NamespacedName, record *record, cause error) {
	run := record.running
	if run == nil {
		return
	}
	run.stopped = cause
	switch {
	case errors.Is(cause, ErrGone):
		go r.hosts.Close(name.Name) // which waits for the end of the connection
		run.cancel(cause)
	case !run.changing:
		run.cancel(cause)
	}
}

// Forget drops what is known of the host of an instance that is gone, and stops its job.
func (r *Runner) Forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if record := r.records[name]; record != nil {
		r.forget(name, record)
		return
	}
	r.hosts.Close(name.Name)
}

// forget is called with r locked. The record of a running job, and the connection, stay for nobody until the job has ended: a change
// of a listed host is not cut off.
func (r *Runner) forget(name types.NamespacedName, record *record) {
	cause := ErrSuperseded
	if record.running != nil && record.running.wanted.OfMachine {
		cause = ErrGone
	}
	r.stop(name, record, cause)
	if record.running == nil {
		r.hosts.Close(name.Name)
		delete(r.records, name)
		return
	}
	if !record.running.changing {
		go r.hosts.Close(name.Name) // which waits for the end of the connection
	}
	record.uid, record.known, record.ended = "", Known{}, nil
}
