package windows

// serviceRun is the part of a service status that concerns the process.
type serviceRun struct {
	state uint32
	// pid is the ID of the process.
	pid uint32
	// ownProcess is true if no other service uses the process.
	ownProcess bool
}

// processCalls contains the calls for opening the process of a service.
type processCalls struct {
	// open opens a process. It returns 0 for an ended or protected process.
	open  func(pid uint32) (handle uintptr, err error)
	close func(handle uintptr)
	// query returns the current status of the service.
	query func() (serviceRun, error)
}

// claimProcess opens the process of a service with the given status and returns the current status. The handle is 0
// if the service has stopped, or if the process is shared, missing or protected. After the end of a process, Windows
// assigns the ID to another process, which must not be ended. Therefore, claimProcess queries the service again
// after opening the process: an open handle prevents the reuse of the ID.
func claimProcess(run serviceRun, calls processCalls) (uintptr, serviceRun, error) {
	for run.state != stateStopped && run.ownProcess && run.pid != 0 {
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
