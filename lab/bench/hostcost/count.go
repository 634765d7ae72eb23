package hostcost

import (
	"regexp"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/rig"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// Of returns what each host has cost so far.
func Of(hosts []*rig.Host) []Cost {
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

// powerShell is PowerShell as a program in a command line: a word, not four letters of a certificate in base64.
var powerShell = regexp.MustCompile(`(?i)(^|[\s"'\\/&|;(])(powershell|pwsh)(\.exe)?($|[\s"'&|;)])`)

// isPowerShell reports whether an entry is a command line that names PowerShell, whether or not the host let it run.
func isPowerShell(e fake.Entry) bool {
	return (e.Kind == winhost.KindCommand || e.Kind == fake.KindProcess) && powerShell.MatchString(e.Detail)
}
