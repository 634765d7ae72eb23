package gather

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/gather/page"
	"github.com/windows-machine-config/wmco/internal/podexec"
)

// The files of a host for the state reported by its agent, the pending changes, and the output of the latest
// agent commands.
const (
	hostFileName = "host.json"
	planName     = "plan.txt"
	runsName     = "last-commands.txt"
)

// responseAllowance is the time that the operator may need besides the hosts. cleanupAllowance is the additional
// time for each host to end running commands and delete copied files.
const responseAllowance, cleanupAllowance = time.Minute, 40 * time.Second

// maxErrorOutput is the maximum kept size of the error output of the operator's command, in bytes.
const maxErrorOutput = 4 << 10

// collectOverSSH collects the data that the operator reads from the hosts: their state, recent events, and the logs
// that no kubelet has served. Unreachable hosts do not end the collection.
func (g *gatherer) collectOverSSH(ctx context.Context, operator podexec.Runner, wishes []podexec.CollectedHost, hosts map[string]*page.Host) {
	const missing = "data that the operator reads from hosts over SSH"
	request, err := json.Marshal(podexec.CollectRequest{Hosts: wishes})
	if err != nil {
		g.recordGap(missing, err)
		return
	}
	rounds := time.Duration((len(wishes) + maxConcurrentHosts - 1) / maxConcurrentHosts)
	limit := rounds*(g.timeout+cleanupAllowance) + responseAllowance
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the operator has not responded within %s", limit))
	defer cancel()
	reports, answer := io.Pipe()
	go func() { answer.CloseWithError(g.runCollectCommand(ctx, operator, request, answer)) }()
	open := map[string]bool{}
	for _, wish := range wishes {
		open[wish.Name] = true
	}
	for decoder := json.NewDecoder(reports); ; {
		var report podexec.CollectReport
		err := decoder.Decode(&report)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			g.recordGap(missing, addMissingHosts(err, open, len(wishes)))
			open = nil // one line covers all hosts
			break
		}
		if open[report.Name] {
			delete(open, report.Name)
			g.writeReport(report, hosts[report.Name])
		}
	}
	_ = reports.Close()
	for name := range open {
		g.recordGap(hostDirectory(name)+hostFileName, errors.New("the operator has reported nothing about the host"))
	}
}

// addMissingHosts adds the names of the hosts without a report to the error, if other hosts have reports.
func addMissingHosts(err error, open map[string]bool, hosts int) error {
	if len(open) == 0 || len(open) == hosts {
		return err
	}
	return fmt.Errorf("%w. No reports of %s", err, strings.Join(slices.Sorted(maps.Keys(open)), ", "))
}

// runCollectCommand runs the operator's command, which writes its reports.
func (g *gatherer) runCollectCommand(ctx context.Context, operator podexec.Runner, request []byte, reports io.Writer) error {
	said := &prefixBuffer{}
	status, err := operator.Run(ctx, []string{podexec.CollectCommand, fmt.Sprintf("--%s=%s", podexec.CollectTimeout, g.timeout)},
		podexec.Streams{In: bytes.NewReader(request), Out: reports, ErrOut: said})
	if err == nil && status != 0 {
		err = errors.New(strings.TrimSpace(said.String()))
	}
	return err
}

// writeReport writes the operator's report of a host.
func (g *gatherer) writeReport(report podexec.CollectReport, shown *page.Host) {
	folder := hostDirectory(report.Name)
	add := func(file string, content []byte) {
		g.write(file, content)
		shown.Files = append(shown.Files, file)
	}
	if report.Plan != "" {
		add(folder+planName, []byte(report.Plan))
	} else if report.Error == "" {
		g.recordGap(folder+planName, errors.New("the operator is older than this program and does not create plans. See: kubectl windows plan"))
	}
	if report.Error != "" {
		g.recordGap(folder+hostFileName, errors.New(report.Error))
		return
	}
	for _, gap := range report.Gaps {
		g.recordGap(folder+"over SSH", errors.New(gap))
	}
	if report.Runs != "" {
		add(folder+runsName, []byte(report.Runs))
	}
	if report.Found != nil {
		var indented bytes.Buffer
		if err := json.Indent(&indented, report.Found, "", "  "); err != nil {
			g.recordGap(folder+hostFileName, err)
		}
		add(folder+hostFileName, indented.Bytes())
	}
	for service, log := range report.Logs {
		add(folder+"logs/"+fileName(service)+".log", log)
	}
}

// hostDirectory returns the directory of a host.
func hostDirectory(name string) string { return "hosts/" + fileName(name) + "/" }

// prefixBuffer keeps the beginning of the written data.
type prefixBuffer struct{ bytes.Buffer }

// Write implements io.Writer.
func (s *prefixBuffer) Write(p []byte) (int, error) {
	s.Buffer.Write(p[:min(len(p), max(0, maxErrorOutput-s.Len()))])
	return len(p), nil
}
