package windows

import (
	"errors"
	"slices"
	"testing"
)

func TestClaimProcess_OnlyProcessOfService(t *testing.T) {
	const first, second = 4711, 4712
	running := func(pid uint32) serviceRun { return serviceRun{state: stateRunning, pid: pid, ownProcess: true} }
	stopped := serviceRun{state: stateStopped, ownProcess: true}
	refused, hidden := errors.New("refused"), errors.New("hidden")
	for name, c := range map[string]struct {
		run    serviceRun
		now    []serviceRun // status of the service for each query
		opens  map[uint32]error
		hidden error

		handle uintptr
		want   serviceRun
		err    error
		closed []uintptr
	}{
		"a service that runs still": {run: running(first), now: []serviceRun{running(first)}, handle: first,
			want: running(first)},
		"one that is stopping": {run: running(first), now: []serviceRun{{stateStopPending, first, true}},
			handle: first, want: serviceRun{stateStopPending, first, true}},
		"one that stopped meanwhile": {run: running(first), now: []serviceRun{stopped}, want: stopped,
			closed: []uintptr{first}},
		"one that stopped and names its process": {run: running(first), now: []serviceRun{{stateStopped, first, true}},
			want: serviceRun{stateStopped, first, true}, closed: []uintptr{first}},
		"one that was started again": {run: running(first), now: []serviceRun{running(second), running(second)},
			handle: second, want: running(second), closed: []uintptr{first}},
		"one that was started again and stopped": {run: running(first), now: []serviceRun{running(second), stopped},
			want: stopped, closed: []uintptr{first, second}},
		"one whose process has ended": {run: running(first), now: []serviceRun{stopped},
			opens: map[uint32]error{first: nil}, want: stopped},
		"one whose process is protected": {run: running(first), now: []serviceRun{running(first)},
			opens: map[uint32]error{first: nil}, want: running(first)},
		"one in a process of several":              {run: serviceRun{stateRunning, first, false}, want: serviceRun{stateRunning, first, false}},
		"one that has stopped before":              {run: stopped, want: stopped},
		"one without a process":                    {run: running(0), want: running(0)},
		"one whose process is not given":           {run: running(first), opens: map[uint32]error{first: refused}, want: running(first), err: refused},
		"one that Windows says nothing more about": {run: running(first), hidden: hidden, want: running(first), err: hidden, closed: []uintptr{first}},
		"one without a process that Windows shows": {run: running(first), opens: map[uint32]error{first: nil}, hidden: hidden, want: running(first), err: hidden},
	} {
		t.Run(name, func(t *testing.T) {
			var closed []uintptr
			queries := 0
			handle, now, err := claimProcess(c.run, processCalls{
				open: func(pid uint32) (uintptr, error) {
					if err, known := c.opens[pid]; known {
						return 0, err
					}
					return uintptr(pid), nil
				},
				close: func(handle uintptr) { closed = append(closed, handle) },
				query: func() (serviceRun, error) {
					if c.hidden != nil {
						return serviceRun{}, c.hidden
					}
					queries++
					return c.now[queries-1], nil
				},
			})
			if handle != c.handle || now != c.want || !errors.Is(err, c.err) {
				t.Errorf("handle %d of %+v, error %v; want %d of %+v, error %v", handle, now, err, c.handle, c.want, c.err)
			}
			if !slices.Equal(closed, c.closed) || queries != len(c.now) {
				t.Errorf("closed %d, want %d; asked %d times, want %d", closed, c.closed, queries, len(c.now))
			}
		})
	}
}
