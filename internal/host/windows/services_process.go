package windows

// serviceRun is how a service stands, as far as it tells of its process.
type serviceRun struct {
	state uint32
	// pid is the process's id.
	pid uint32
	// own is true when the process is the service's alone.
	own bool
}

// processCalls are the calls with which a service's process is opened.
type processCalls struct {
	// open opens a process; 0 for one that has ended or is protected.
	open  func(pid uint32) (handle uintptr, err error)
	close func(handle uintptr)
	// query asks how the service stands now.
	query func() (serviceRun, error)
}

// claimProcess opens the process of a service that stood like this, and returns how the service stands now. The handle
// is 0 when the service has stopped, or has no process that is its alone and can be opened. Once a process has ended
// Windows gives its id to another, which nobody may end for the service's sake: so the service is asked again when the
// process is open, which keeps its id from others.
func claimProcess(run serviceRun, calls processCalls) (uintptr, serviceRun, error) {
	for run.state != stateStopped && run.own && run.pid != 0 {
		handle, err := calls.open(run.pid)
		if err != nil {
			return 0, run, err
		}
		now, err := calls.query()
		if err == nil && now.state != stateStopped && now.pid == run.pid {
			return handle, now, nil
		}
		if handle != 0 {
			calls.close(handle)
		}
		if err != nil {
			return 0, run, err
		}
		run = now
	}
	return 0, run, nil
}
