package bench

import (
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/rig"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// costsOf are what each host has cost so far.
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

// powerShell is PowerShell as a program in a command line: a word, not four letters of a certificate in base64.
var powerShell = regexp.MustCompile(`(?i)(^|[\s"'\\/&|;(])(powershell|pwsh)(\.exe)?($|[\s"'&|;)])`)

// isPowerShell reports whether an entry is a command line that names PowerShell, whether or not the host let it run.
func isPowerShell(e fake.Entry) bool {
	return (e.Kind == winhost.KindCommand || e.Kind == fake.KindProcess) && powerShell.MatchString(e.Detail)
}

func differences(after, before []Cost) []Cost {
	costs := make([]Cost, len(after))
	for i := range after {
		costs[i] = after[i].minus(before[i])
	}
	return costs
}

// Counters of the operator, which runs in this process.
const (
	stepsCounter      = "wmco_steps_total"
	reconcilesCounter = "controller_runtime_reconcile_total"
)

// counter returns the sum of a counter's series; label, if not empty, chooses those with its value.
func counter(name, label, value string) (int, error) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return 0, fmt.Errorf("read the operator's metrics: %w", err)
	}
	total := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, series := range family.GetMetric() {
			chosen := label == ""
			for _, pair := range series.GetLabel() {
				chosen = chosen || pair.GetName() == label && pair.GetValue() == value
			}
			if chosen {
				total += series.GetCounter().GetValue()
			}
		}
	}
	return int(total), nil
}
