package fleet

import (
	"regexp"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/rig"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// Cost counts the work on a host, and between it and the operator.
type Cost struct {
	Connections  int   `json:"connections"`
	Execs        int   `json:"execs"`
	PowerShell   int   `json:"powershell"`
	SFTPSessions int   `json:"sftpSessions"`
	Reboots      int   `json:"reboots"`
	Processes    int   `json:"processStarts"`
	Services     int   `json:"serviceOperations"`
	Received     int64 `json:"bytesReceived"` // by the host, with all that SSH adds
	Sent         int64 `json:"bytesSent"`
}

// minus returns what was added since.
func (c Cost) minus(before Cost) Cost {
	return Cost{
		Connections: c.Connections - before.Connections, Execs: c.Execs - before.Execs,
		PowerShell:   c.PowerShell - before.PowerShell,
		SFTPSessions: c.SFTPSessions - before.SFTPSessions, Reboots: c.Reboots - before.Reboots,
		Processes: c.Processes - before.Processes,
		Services:  c.Services - before.Services, Received: c.Received - before.Received, Sent: c.Sent - before.Sent,
	}
}

// worstCost returns the largest of each kind, which need not all be of one host.
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

// totalCost returns the cost of all hosts together.
func totalCost(costs []Cost) Cost {
	var s Cost
	for _, c := range costs {
		s = s.minus(Cost{}.minus(c))
	}
	return s
}

// costsSince returns what each host has cost since.
func costsSince(after, before []Cost) []Cost {
	costs := make([]Cost, len(after))
	for i := range after {
		costs[i] = after[i].minus(before[i])
	}
	return costs
}

// costsOf returns what each host has cost so far.
func costsOf(hosts []*rig.Host) []Cost {
	costs := make([]Cost, len(hosts))
	for i, h := range hosts {
		costs[i] = costOf(h.Machine().Journal())
		costs[i].Received, costs[i].Sent = h.Traffic()
	}
	return costs
}

// costOf counts in a journal, all but the bytes. Execs are the commands that were asked for, whether or not they ran.
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

// transferSeconds returns how long the SFTP session was in which the host received the most, that with the packed
// programs; 0 without one.
func transferSeconds(entries []fake.Entry) (seconds float64) {
	var began time.Time // zero while there is none
	most := int64(0)
	for _, e := range entries {
		switch {
		case e.Kind == fake.KindSFTP:
			began = e.Time
		case e.Kind == fake.KindReceived && !began.IsZero():
			if e.Bytes > most {
				most, seconds = e.Bytes, e.Time.Sub(began).Seconds()
			}
			began = time.Time{}
		}
	}
	return seconds
}

// powerShell is PowerShell as a program in a command line: a word, not four letters of a certificate in base64.
var powerShell = regexp.MustCompile(`(?i)(^|[\s"'\\/&|;(])(powershell|pwsh)(\.exe)?($|[\s"'&|;)])`)

// isPowerShell reports whether an entry is a command line that names PowerShell, whether or not the host let it run.
func isPowerShell(e fake.Entry) bool {
	return (e.Kind == winhost.KindCommand || e.Kind == fake.KindProcess) && powerShell.MatchString(e.Detail)
}
