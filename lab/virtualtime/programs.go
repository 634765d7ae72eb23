package virtualtime

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/metrics"
)

// Programs returns a function that reports whether this process, or another process with a listed ID, works or
// is about to work. Waiting for a processor or a disk counts as work. A process that sleeps on the operating
// system's clock is idle, so processes with measured waits must not do that.
func Programs(pids ...int) (busy func() bool) {
	samples := []metrics.Sample{{Name: "/sched/goroutines/running:goroutines"},
		{Name: "/sched/goroutines/runnable:goroutines"}}
	return func() bool {
		// This process is checked last, because it may already process the results of another process.
		for _, other := range pids {
			if isWorking(other) {
				return true
			}
		}
		metrics.Read(samples)
		return samples[0].Value.Uint64() > 1 || samples[1].Value.Uint64() > 0 // excluding the calling goroutine
	}
}

// isWorking reports whether a thread of a process runs or waits for a processor or a disk. An ended process does
// not work.
func isWorking(process int) bool {
	tasks := fmt.Sprintf("/proc/%d/task", process)
	dir, err := os.Open(tasks)
	if err != nil {
		return false
	}
	threads, err := dir.Readdirnames(-1)
	if closed := dir.Close(); err != nil || closed != nil {
		return false
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(filepath.Join(tasks, thread, "stat"))
		if err != nil {
			continue // it has ended
		}
		// The state follows the name, which is in parentheses and may contain further parentheses.
		if end := bytes.LastIndexByte(stat, ')'); end >= 0 && end+2 < len(stat) &&
			(stat[end+2] == 'R' || stat[end+2] == 'D') {
			return true
		}
	}
	return false
}
