package logprinter

import (
	"bytes"
	"errors"
	"regexp"
	"time"
)

var (
	// stamped matches the time in a line of the agent, containerd and the exporter.
	stamped = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)`)
	// klogged matches the local time, without year, in a line of kubelet, kube-proxy, hybrid-overlay-node and
	// csi-proxy.
	klogged = regexp.MustCompile(`^[IWEF](\d{4} \d\d:\d\d:\d\d)`)
)

// maxTimeOffset is the maximum number of bytes before the time in a line.
const maxTimeOffset = 100

// zoneStep is the step between the time zones of the world.
const zoneStep = 15 * time.Minute

var errNoTimes = errors.New("the log has no lines with a recognized time. Use --tail instead of --since")

// linesSince returns the lines of a log from a time on, and whether earlier lines exist. A line without a time
// belongs to the previous line. The last line is as old as the modification of the log, which reveals the
// host's time zone for lines without a zone.
func linesSince(log []byte, modified, from time.Time) (lines []byte, earlier bool, err error) {
	zone := zoneOf(log, modified)
	timed := false
	for at := 0; at < len(log); {
		end := len(log)
		if length := bytes.IndexByte(log[at:], '\n'); length >= 0 {
			end = at + length + 1
		}
		if written, ok := timeOf(log[at:end], modified, zone); ok {
			timed = true
			if !written.Before(from) {
				return log[at:], earlier, nil
			}
			earlier = true
		}
		at = end
	}
	if !timed && len(log) > 0 {
		return nil, false, errNoTimes
	}
	return nil, earlier, nil
}

// timeOf returns the time at the start of a line.
func timeOf(line []byte, modified time.Time, zone time.Duration) (time.Time, bool) {
	if found := stamped.Find(line[:min(len(line), maxTimeOffset)]); found != nil {
		written, err := time.Parse(time.RFC3339Nano, string(found))
		return written, err == nil
	}
	written, ok := localTime(line, modified)
	return written.Add(-zone), ok
}

// localTime returns the time of a line of klog, as if the host's zone were UTC. The year is the latest that
// makes the time at most a day later than the modification of the log.
func localTime(line []byte, modified time.Time) (time.Time, bool) {
	found := klogged.FindSubmatch(line)
	if found == nil {
		return time.Time{}, false
	}
	const withYear = "2006 0102 15:04:05"
	for year := modified.UTC().Year() + 1; year >= modified.UTC().Year()-1; year-- {
		written, err := time.Parse(withYear, time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Format("2006 ")+string(found[1]))
		if err == nil && written.Before(modified.Add(24*time.Hour)) { // February 29 does not exist in each year
			return written, true
		}
	}
	return time.Time{}, false
}

// zoneOf returns the offset of the host's clock from UTC: the last line is as old as the file.
func zoneOf(log []byte, modified time.Time) time.Duration {
	for end := len(log); end > 0; {
		begin := bytes.LastIndexByte(log[:end-1], '\n') + 1
		if written, ok := localTime(log[begin:end], modified); ok {
			return written.Sub(modified).Round(zoneStep)
		}
		end = begin
	}
	return 0
}
