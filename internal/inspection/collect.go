package inspection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/fleet"
	"github.com/windows-machine-config/wmco/internal/inspection/dryrun"
	"github.com/windows-machine-config/wmco/internal/inspection/hostlogs"
	"github.com/windows-machine-config/wmco/internal/inspection/hostsession"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/podexec"
	"github.com/windows-machine-config/wmco/internal/sanitize"
	"github.com/windows-machine-config/wmco/internal/sshkey"
)

// maxInputSize is the maximum size of the input of a command, in bytes.
const maxInputSize = 8 << 20

// readInput reads the JSON document at the start of a command's standard input.
func readInput(command *cobra.Command, document any) error {
	if err := json.NewDecoder(io.LimitReader(command.InOrStdin(), maxInputSize)).Decode(document); err != nil {
		return fmt.Errorf("read the input of %s: %w", command.Name(), err)
	}
	return nil
}

func collectCommand(configure func() (operator.Config, error)) *cobra.Command {
	o, limit := &options{}, time.Duration(0)
	command := &cobra.Command{
		Use:   podexec.CollectCommand,
		Short: "Collect data of hosts for kubectl windows gather, with the hosts from standard input; nothing is changed",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			var request podexec.CollectRequest
			if err := readInput(command, &request); err != nil {
				return err
			}
			return o.runInspector(command, configure, func(ctx context.Context, i *inspector) error {
				out := json.NewEncoder(command.OutOrStdout())
				return i.collectHosts(ctx, request.Hosts, limit, func(r podexec.CollectReport) error { return out.Encode(r) })
			})
		},
	}
	o.addAttached(command)
	command.Flags().DurationVar(&limit, podexec.CollectTimeout, 2*time.Minute, "timeout for one host")
	return command
}

// collectHosts reads the state of hosts, and writes a report for each host.
func (i *inspector) collectHosts(ctx context.Context, wishes []podexec.CollectedHost, limit time.Duration, write func(podexec.CollectReport) error) error {
	instances, err := fleet.ReadInstances(ctx, i.reader, i.Namespace)
	if err != nil {
		return err
	}
	key, err := i.readKey(ctx)
	if err != nil {
		return err
	}
	l := hostCollector{inspector: i, key: key, timeout: limit, forecaster: i.newForecaster()}
	if l.cluster, _, err = cluster.Read(ctx, i.reader, i.Namespace, nodespec.ServingCertificate{}); err != nil {
		l.cluster, l.planErr = nodespec.Cluster{}, clusterUnusableError(err)
	}
	var group sync.WaitGroup
	var writing sync.Mutex
	var failed error
	places := make(chan struct{}, maxConcurrentHosts)
	for _, wish := range wishes {
		group.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			report := podexec.CollectReport{Name: wish.Name}
			if instance, err := fleet.Find(instances, wish.Name); err != nil {
				report.Error = err.Error()
			} else {
				report = l.collectHost(ctx, &instance.WindowsInstance, wish)
			}
			writing.Lock()
			defer writing.Unlock()
			failed = errors.Join(failed, write(report))
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return failed
}

// hostCollector holds the settings for collecting the state of hosts for a support case.
type hostCollector struct {
	*inspector
	key        sshkey.Key
	timeout    time.Duration // for one host
	cluster    nodespec.Cluster
	planErr    error // reason for a missing plan of all hosts
	forecaster dryrun.Forecaster
}

// collectHost collects the state of one host.
func (l hostCollector) collectHost(ctx context.Context, instance *v1alpha1.WindowsInstance, wish podexec.CollectedHost) podexec.CollectReport {
	report := podexec.CollectReport{Name: wish.Name}
	ctx, cancel := context.WithTimeoutCause(ctx, l.timeout, errHostTimeout)
	defer cancel()
	target, err := l.newTarget(ctx, instance, l.key, &l.cluster)
	var stay *hostsession.Session
	if err == nil {
		login, cancel := context.WithTimeoutCause(ctx, loginTimeout(l.timeout), errHostTimeout)
		stay, err = l.connector.Connect(login, target)
		cancel()
	}
	if err != nil {
		report.Error = stages{instance.Spec.Address, l.timeout, loginTimeout(l.timeout)}.formatFailure("its login", err)
		report.Plan = formatForecast(l.forecaster.Unknown(instance, report.Error))
		return report
	}
	lacks := func(what, stage string, err error) {
		if err != nil {
			report.Gaps = append(report.Gaps, what+": "+stages{instance.Spec.Address, l.timeout, l.timeout}.formatFailure(stage, err))
		}
	}
	if wish.Logs {
		report.Logs, err = hostlogs.Ends(ctx, hostlogs.Files{Host: stay})
		lacks("logs", "reading its logs", err)
	}
	if err := stay.EnsureAgent(ctx, instance.Status.Host != nil); err != nil {
		lacks("host data", "installing the agent", err)
	} else {
		report.Found, report.Runs, err = collectFindings(ctx, stay)
		lacks("host data", "the agent command collect", err)
	}
	report.Plan = formatForecast(l.planHost(ctx, stay, instance))
	lacks("the files for this report", "deleting the temporary files", stay.Finish(ctx))
	return report
}

// planHost returns the operator's next changes of the host.
func (l hostCollector) planHost(ctx context.Context, stay *hostsession.Session, instance *v1alpha1.WindowsInstance) dryrun.Forecast {
	if l.planErr != nil {
		return l.forecaster.Unknown(instance, l.planErr.Error())
	}
	made, _ := l.forecaster.At(ctx, stay, instance, l.cluster, l.key) // Finish reports files left on the host
	if ctx.Err() != nil {
		return l.forecaster.Unknown(instance, stages{instance.Spec.Address, l.timeout, l.timeout}.formatFailure("the agent's plan", context.Cause(ctx)))
	}
	return made
}

// errHostTimeout is the cause that ends the work on one host.
var errHostTimeout = errors.New("the timeout for the host expired")

// loginTimeout is the part of a host's time limit that its login may use, so that unreachable hosts delay all
// other hosts less.
func loginTimeout(host time.Duration) time.Duration { return min(host, max(20*time.Second, host/6)) }

// stages describes the progress on a host within its time: the limit for all stages, and the limit of the
// current stage.
type stages struct {
	address  string
	all, end time.Duration
}

// formatFailure describes the failure of a stage.
func (s stages) formatFailure(stage string, err error) string {
	if errors.Is(err, errHostTimeout) {
		return fmt.Sprintf("host %s: timed out after %s during %s; for more time, use --%s=%s", s.address, s.end, stage,
			podexec.CollectTimeout, 2*s.all)
	}
	return sanitize.Printable(err.Error())
}

// collectFindings runs the agent command collect. Output of a hostile host is bounded, and is only written to a file.
func collectFindings(ctx context.Context, stay *hostsession.Session) (data json.RawMessage, runs string, err error) {
	result, err := stay.Collect(ctx)
	if err != nil {
		return nil, "", err
	}
	result.Facts.Ledger = plan.Ledger{} // contains original files and variables of the host
	data, err = json.Marshal(struct {
		Facts     *plan.Facts         `json:"facts"`
		Collected *agentapi.Collected `json:"collected"`
	}{result.Facts, result.Collected})
	return data, formatRuns(result.Collected.Runs), err
}
