package logprinter

import (
	"bytes"
	"errors"
	"regexp"
	"time"
)

var (
	// stamped is the time in a line of the agent, containerd and the exporter.
	stamped = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)`)
	// klogged is the time in a line of kubelet, kube-proxy, hybrid-overlay-node and csi-proxy: that of the host's zone, without year.
	klogged = regexp.MustCompile(`^[IWEF](\d{4} \d\d:\d\d:\d\d)`)
)

// mostBeforeTime is how many bytes of a line may be before its time.
const mostBeforeTime = 100

// zoneStep is what the zones of the world differ in.
const zoneStep = 15 * time.Minute

var errNoTimes = errors.New("its lines have no time that is understood. Show the end of it with --tail instead of --since")

// later returns the lines of a log from a moment on, and whether there are earlier ones. A line without a time belongs to the
// one before. The log was written to last when it was modified, which tells the zone of a host that writes none.
func later(log []byte, modified, from time.Time) (lines []byte, earlier bool, err error) {
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

// timeOf is the time that a line begins with.
func timeOf(line []byte, modified time.Time, zone time.Duration) (time.Time, bool) {
	if found := stamped.Find(line[:min(len(line), mostBeforeTime)]); found != nil {
		written, err := time.Parse(time.RFC3339Nano, string(found))
		return written, err == nil
	}
	written, ok := localTime(line, modified)
	return written.Add(-zone), ok
}

// localTime is the time of a line of klog, as if the host's zone were UTC. The year is the last one in which that time is not
// more than a day after the log was written.
func localTime(line []byte, modified time.Time) (time.Time, bool) {
	found := klogged.FindSubmatch(line)
	if found == nil {
		return time.Time{}, false
	}
	const withYear = "2006 0102 15:04:05"
	for year := modified.UTC().Year() + 1; year >= modified.UTC().Year()-1; year-- {
		written, err := time.Parse(withYear, time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Format("2006 ")+string(found[1]))
		if err == nil && written.Before(modified.Add(24*time.Hour)) { // a 29 February is not in each year
			return written, true
		}
	}
	return time.Time{}, false
}

// zoneOf is how far the clock of the host is ahead of UTC: its last line is as old as the file.
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
