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
	runsName     = "last-verbs.txt"
)

// answerAllowance is the time that the operator may need besides the hosts. leaveAllowance is the additional
// time for each host to end running commands and delete copied files.
const answerAllowance, leaveAllowance = time.Minute, 40 * time.Second

// mostSaid is the maximum kept size of the error output of the operator's command, in bytes.
const mostSaid = 4 << 10

// overSSH collects the data that the operator reads from the hosts: their state, recent events, and the logs
// that no kubelet has served. Unreachable hosts do not end the collection.
func (g *gatherer) overSSH(ctx context.Context, operator podexec.Runner, wishes []podexec.CollectedHost, hosts map[string]*page.Host) {
	const missing = "data that the operator reads from hosts over SSH"
	request, err := json.Marshal(podexec.CollectRequest{Hosts: wishes})
	if err != nil {
		g.lacks(missing, err)
		return
	}
	rounds := time.Duration((len(wishes) + atOnce - 1) / atOnce)
	limit := rounds*(g.timeout+leaveAllowance) + answerAllowance
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the operator has not answered within %s", limit))
	defer cancel()
	reports, answer := io.Pipe()
	go func() { answer.CloseWithError(g.ask(ctx, operator, request, answer)) }()
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
			g.lacks(missing, cut(err, open, len(wishes)))
			open = nil // one line covers all hosts
			break
		}
		if open[report.Name] {
			delete(open, report.Name)
			g.report(report, hosts[report.Name])
		}
	}
	_ = reports.Close()
	for name := range open {
		g.lacks(folderOf(name)+hostFileName, errors.New("the operator has reported nothing about the host"))
	}
}

// cut adds the names of the hosts without a report to the error, if other hosts have reports.
func cut(err error, open map[string]bool, hosts int) error {
	if len(open) == 0 || len(open) == hosts {
		return err
	}
	return fmt.Errorf("%w. There is no report of %s", err, strings.Join(slices.Sorted(maps.Keys(open)), ", "))
}

// ask runs the operator's command, which writes its reports.
func (g *gatherer) ask(ctx context.Context, operator podexec.Runner, request []byte, reports io.Writer) error {
	said := &saying{}
	status, err := operator.Run(ctx, []string{podexec.CollectCommand, fmt.Sprintf("--%s=%s", podexec.CollectTimeout, g.timeout)},
		podexec.Streams{In: bytes.NewReader(request), Out: reports, ErrOut: said})
	if err == nil && status != 0 {
		err = errors.New(strings.TrimSpace(said.String()))
	}
	return err
}

// report writes the operator's report of a host.
func (g *gatherer) report(report podexec.CollectReport, shown *page.Host) {
	folder := folderOf(report.Name)
	add := func(file string, content []byte) {
		g.write(file, content)
		shown.Files = append(shown.Files, file)
	}
	if report.Plan != "" {
		add(folder+planName, []byte(report.Plan))
	} else if report.Error == "" {
		g.lacks(folder+planName, errors.New("the operator is older than this program, and creates no plan. See: kubectl windows plan"))
	}
	if report.Error != "" {
		g.lacks(folder+hostFileName, errors.New(report.Error))
		return
	}
	for _, gap := range report.Gaps {
		g.lacks(folder+"over SSH", errors.New(gap))
	}
	if report.Runs != "" {
		add(folder+runsName, []byte(report.Runs))
	}
	if report.Found != nil {
		var indented bytes.Buffer
		if err := json.Indent(&indented, report.Found, "", "  "); err != nil {
			g.lacks(folder+hostFileName, err)
		}
		add(folder+hostFileName, indented.Bytes())
	}
	for service, log := range report.Logs {
		add(folder+"logs/"+fileName(service)+".log", log)
	}
}

// folderOf returns the directory of a host.
func folderOf(name string) string { return "hosts/" + fileName(name) + "/" }

// saying keeps the beginning of the written data.
type saying struct{ bytes.Buffer }

// Write implements io.Writer.
func (s *saying) Write(p []byte) (int, error) {
	s.Buffer.Write(p[:min(len(p), max(0, mostSaid-s.Len()))])
	return len(p), nil
}
