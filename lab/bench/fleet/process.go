package fleet

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor time in /proc: USER_HZ, which is 100 on all of Linux.
const tick = 10 * time.Millisecond

// checkProc makes sure that /proc tells of the processes that this one starts: in a container that forbids to mount it,
// it tells of others.
func checkProc() error {
	self, err := os.Readlink("/proc/self")
	if err == nil && self != strconv.Itoa(os.Getpid()) {
		err = fmt.Errorf("process %d is %s there", os.Getpid(), self)
	}
	if err != nil {
		return fmt.Errorf("read the processor time of processes in /proc: %w: it shows other processes, because this container does not allow to mount it: "+
			"run this outside of a container, or in one with the capability SYS_ADMIN", err)
	}
	return nil
}

// processorTime returns how many seconds of processor time a process has had.
func processorTime(pid int) (float64, error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	return parseStat(data)
}

// parseStat reads /proc/<pid>/stat.
func parseStat(stat []byte) (float64, error) {
	const user, system = 11, 12 // from the state on, which follows the name in parentheses
	_, rest, found := cutLast(stat, ") ")
	fields := strings.Fields(string(rest))
	if !found || len(fields) <= system {
		return 0, fmt.Errorf("read the processor time of a process: %q is no line of /proc/<pid>/stat", stat)
	}
	total := 0.0
	for _, i := range []int{user, system} {
		ticks, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the processor time of a process: %w", err)
		}
		total += float64(ticks) * tick.Seconds()
	}
	return total, nil
}

func cutLast(data []byte, separator string) (before, after []byte, found bool) {
	i := bytes.LastIndex(data, []byte(separator))
	if i < 0 {
		return data, nil, false
	}
	return data[:i], data[i+len(separator):], true
}

// residentMemory returns the most memory that a process has had, and what it has now, in bytes.
func residentMemory(pid int) (peak, now int64, err error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0, 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return parseStatus(data)
}

// parseStatus reads /proc/<pid>/status.
func parseStatus(status []byte) (peak, now int64, err error) {
	values := map[string]*int64{"VmHWM": &peak, "VmRSS": &now}
	for line := range strings.Lines(string(status)) {
		name, text, _ := strings.Cut(line, ":")
		value, wanted := values[name]
		if !wanted {
			continue
		}
		kib, unit := strings.CutSuffix(strings.TrimSpace(text), " kB")
		n, err := strconv.ParseInt(kib, 10, 64)
		if err != nil || !unit {
			return 0, 0, fmt.Errorf("read the memory of a process: %s is %q", name, text)
		}
		*value = n << 10
		delete(values, name)
	}
	if len(values) > 0 {
		return 0, 0, fmt.Errorf("read the memory of a process: /proc/<pid>/status has no %v", values)
	}
	return peak, now, nil
}
