package fleet

import (
	"regexp"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// Cost counts the work on a host, and the traffic between host and operator.
type Cost struct {
	Connections  int   `json:"connections"`
	Execs        int   `json:"execs"`
	PowerShell   int   `json:"powershell"`
	SFTPSessions int   `json:"sftpSessions"`
	Reboots      int   `json:"reboots"`
	Processes    int   `json:"processStarts"`
	Services     int   `json:"serviceOperations"`
	Received     int64 `json:"bytesReceived"` // by the host, including SSH overhead
	Sent         int64 `json:"bytesSent"`
}

// differenceFrom returns the difference to an earlier cost.
func (c Cost) differenceFrom(before Cost) Cost {
	return Cost{
		Connections: c.Connections - before.Connections, Execs: c.Execs - before.Execs,
		PowerShell:   c.PowerShell - before.PowerShell,
		SFTPSessions: c.SFTPSessions - before.SFTPSessions, Reboots: c.Reboots - before.Reboots,
		Processes: c.Processes - before.Processes,
		Services:  c.Services - before.Services, Received: c.Received - before.Received, Sent: c.Sent - before.Sent,
	}
}

// worstCost returns the maximum of each kind, possibly from different hosts.
func worstCost(costs []Cost) Cost {
	var w Cost
	for _, c := range costs {
		w = Cost{
			Connections: max(w.Connections, c.Connections), Execs: max(w.Execs, c.Execs),
			PowerShell:   max(w.PowerShell, c.PowerShell),
			SFTPSessions: max(w.SFTPSessions, c.SFTPSessions), Reboots: max(w.Reboots, c.Reboots),
			Processes: max(w.Processes, c.Processes),
			Services:  max(w.Services, c.Services), Received: max(w.Received, c.Received), Sent: max(w.Sent, c.Sent),
		}
	}
	return w
}

// totalCost returns the sum of the costs of all hosts.
func totalCost(costs []Cost) Cost {
	var s Cost
	for _, c := range costs {
		s = s.differenceFrom(Cost{}.differenceFrom(c))
	}
	return s
}

// costsSince returns the cost of each host since an earlier measurement.
func costsSince(after, before []Cost) []Cost {
	costs := make([]Cost, len(after))
	for i := range after {
		costs[i] = after[i].differenceFrom(before[i])
	}
	return costs
}

// costsOf returns the cost of each host so far.
func costsOf(hosts []*testenv.Host) []Cost {
	costs := make([]Cost, len(hosts))
	for i, h := range hosts {
		costs[i] = costOf(h.Machine().Journal())
		costs[i].Received, costs[i].Sent = h.Traffic()
	}
	return costs
}

// costOf returns the counts in a journal, without bytes. Execs are requested commands, including commands that
// did not run.
func costOf(journal *fake.Journal) Cost {
	c := Cost{
		Connections: journal.Count(fake.KindConnection), Execs: journal.Count(winhost.KindCommand),
		SFTPSessions: journal.Count(fake.KindSFTP),
		Reboots:      journal.Count(fake.KindReboot), Services: journal.Count(fake.KindService),
	}
	for _, e := range journal.Entries(nil) {
		if e.Kind == fake.KindProcess && strings.HasPrefix(e.Detail, "start ") {
			c.Processes++
		}
		if isPowerShell(e) {
			c.PowerShell++
		}
	}
	return c
}

// transferSeconds returns the duration of the SFTP session with the most received bytes, which transferred the
// packed programs; 0 without a session.
func transferSeconds(entries []fake.Entry) (seconds float64) {
	var start time.Time // zero without a session
	most := int64(0)
	for _, e := range entries {
		switch {
		case e.Kind == fake.KindSFTP:
			start = e.Time
		case e.Kind == fake.KindReceived && !start.IsZero():
			if e.Bytes > most {
				most, seconds = e.Bytes, e.Time.Sub(start).Seconds()
			}
			start = time.Time{}
		}
	}
	return seconds
}

// powerShell matches PowerShell as a program in a command line: a complete word, not part of a certificate in
// base64.
var powerShell = regexp.MustCompile(`(?i)(^|[\s"'\\/&|;(])(powershell|pwsh)(\.exe)?($|[\s"'&|;)])`)

// isPowerShell reports whether an entry is a command line that contains PowerShell, even if the host refused
// it.
func isPowerShell(e fake.Entry) bool {
	return (e.Kind == winhost.KindCommand || e.Kind == fake.KindProcess) && powerShell.MatchString(e.Detail)
}
