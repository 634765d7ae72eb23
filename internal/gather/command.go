// Package gather is the command that collects the cluster's data about Windows hosts for a support case. No
// Secret is read.
package gather

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-machine-config/wmco/internal/cmdutil"
	"github.com/windows-machine-config/wmco/internal/fleet"
	"github.com/windows-machine-config/wmco/internal/fleet/status"
	"github.com/windows-machine-config/wmco/internal/gather/page"
	"github.com/windows-machine-config/wmco/internal/nodelogs"
	"github.com/windows-machine-config/wmco/internal/podexec"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// maxConcurrentHosts is the maximum number of hosts collected concurrently, so that unreachable hosts delay only a
// part of the rest.
const maxConcurrentHosts = 8

type command struct {
	*cmdutil.Access
	operator        podexec.Runner
	file, directory string
	timeout         time.Duration
	overSSH         bool
}

// gatherer collects the data for one run of the command.
type gatherer struct {
	*collection
	now     time.Time
	timeout time.Duration
	logs    func(node string) (nodelogs.Files, error)
	// nodes holds the Nodes of the cluster by name, as far as readable.
	nodes map[string]corev1.Node
}

// New returns the command of kubectl windows.
func New(a *cmdutil.Access, operator podexec.Runner) *cobra.Command {
	return newCommand(a, operator, "")
}

// NewInPod returns the command for a pod: the files are written into a directory that is copied out of the pod.
func NewInPod(a *cmdutil.Access, operator podexec.Runner, directory string) *cobra.Command {
	inPod := newCommand(a, operator, directory)
	inPod.Short, inPod.Example = "Collect data for a support case into "+directory+", for oc adm must-gather", ""
	return inPod
}

func newCommand(a *cmdutil.Access, operator podexec.Runner, directory string) *cobra.Command {
	c := &command{Access: a, operator: operator}
	cobraCommand := &cobra.Command{
		Use:   "gather [NAME...]",
		Short: "Collect data for a support case into one archive",
		Long: `Collect WindowsInstances with the output of kubectl windows status, Nodes, events, the disruption policy, the operator's pods
and logs, the logs of the services of each node, and the cluster's version and network. Hosts that never became nodes are
included. The operator connects to each host over SSH: a command runs in the operator's pod. The agent reports the state of
services, Windows' event log, networks and firewall rules, the last output of agent commands, and the pending changes. If the
host lacks the agent, a copy is installed and deleted again; nothing else is changed.

Start with index.html, which names the unreachable hosts and draws the timeline of each host, in any browser and without a
network. With names, the directories of other hosts are omitted. Secrets are not read; of other objects the values of
environment variables and the arguments of containers are omitted. Data that cannot be read is listed in gaps.txt, and the
collection continues.`,
		Example: `  kubectl windows gather

  # Of one host
  kubectl windows gather win-worker-1 --file=case-1234.tar.gz`,
		RunE: func(cmd *cobra.Command, names []string) error { return c.run(cmd.Context(), names) },
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return fleet.Completions(cmd.Context(), a.Client, a.Namespace()), cobra.ShellCompDirectiveNoFileComp
		},
	}
	flags := cobraCommand.Flags()
	flags.StringVar(&c.file, "file", "", "archive to write (default: windows-gather-<time>.tar.gz)")
	flags.StringVar(&c.directory, "dest-dir", directory, "directory to write files into, instead of an archive")
	flags.DurationVar(&c.timeout, podexec.CollectTimeout, 2*time.Minute, "timeout for one host over SSH (at most 20s for a kubelet)")
	flags.BoolVar(&c.overSSH, "over-ssh", true, "collect data from the hosts over SSH")
	cobraCommand.MarkFlagsMutuallyExclusive("file", "dest-dir")
	return cobraCommand
}

func (c *command) run(ctx context.Context, names []string) error {
	g, clientset, err := c.newGatherer()
	if err != nil {
		return err
	}
	f, err := fleet.Read(ctx, g.reader, c.Namespace())
	if err != nil {
		return err
	}
	chosen := f.Instances
	if len(names) > 0 {
		chosen = nil
	}
	for _, name := range names {
		instance, err := fleet.Find(f.Instances, name)
		if err != nil {
			return err
		}
		chosen = append(chosen, instance)
	}
	place, err := c.openOutput(g)
	if err != nil {
		return err
	}
	defer g.sink.discardOutput()
	c.collectData(ctx, g, clientset, f, chosen)
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("interrupted before everything was collected: %w", err)
	}
	if g.broken != nil {
		return g.broken
	}
	if err := g.sink.finishOutput(); err != nil {
		return err
	}
	return c.printSummary(g, place, f, len(chosen))
}

func (c *command) newGatherer() (*gatherer, kubernetes.Interface, error) {
	reader, err := c.Client()
	if err != nil {
		return nil, nil, err
	}
	config, err := c.Config()
	if err != nil {
		return nil, nil, err
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	return &gatherer{collection: &collection{reader: reader}, now: c.Clock.Now(), timeout: c.timeout,
		logs: func(node string) (nodelogs.Files, error) { return nodelogs.Of(config, node) }}, clientset, nil
}

// openOutput opens the output, and returns its name.
func (c *command) openOutput(g *gatherer) (string, error) {
	if c.directory != "" && c.file == "" {
		if err := os.MkdirAll(c.directory, 0o750); err != nil {
			return "", err
		}
		g.sink = directorySink{directory: c.directory}
		return c.directory, nil
	}
	name := c.file
	if name == "" {
		name = "windows-gather-" + g.now.UTC().Format("20060102-150405") + ".tar.gz"
	}
	archive, err := newArchive(name, g.now)
	if err != nil {
		return "", err
	}
	g.sink = archive
	return name, nil
}

func (c *command) collectData(ctx context.Context, g *gatherer, clientset kubernetes.Interface, f fleet.Fleet,
	chosen []fleet.Instance) {
	var table bytes.Buffer
	if err := status.WriteTable(&table, f, g.now); err != nil {
		g.recordGap("status.txt", err)
	}
	g.write("status.txt", table.Bytes())
	g.nodes = g.readNodes(ctx)
	hosts, served := make([]page.Host, len(chosen)), make([]bool, len(chosen))
	var work errgroup.Group
	work.SetLimit(maxConcurrentHosts)
	work.Go(func() error { g.collectCluster(ctx, c.Namespace()); return nil })
	work.Go(func() error { g.collectOperator(ctx, clientset, c.Namespace()); return nil })
	for n, instance := range chosen {
		work.Go(func() error {
			fmt.Fprintf(c.ErrOut, "host %d of %d: %s\n", n+1, len(chosen), instance.Name)
			hosts[n], served[n] = g.collectHost(ctx, f, instance)
			return nil
		})
	}
	_ = work.Wait() // no goroutine returns an error
	if c.overSSH && len(chosen) > 0 {
		wishes, shown := make([]podexec.CollectedHost, len(chosen)), map[string]*page.Host{}
		for n, instance := range chosen {
			wishes[n] = podexec.CollectedHost{Name: instance.Name, Logs: !served[n]}
			shown[instance.Name] = &hosts[n]
		}
		fmt.Fprintf(c.ErrOut, "the operator collects data from %s over SSH\n", sanitize.Pluralize(len(chosen), "host"))
		g.collectOverSSH(ctx, c.operator, wishes, shown)
	}
	gaps := g.listGaps()
	if len(gaps) == 0 {
		gaps = []string{"All data was collected."}
	}
	g.write("gaps.txt", []byte(strings.Join(gaps, "\n")+"\n"))
	var drawn bytes.Buffer
	if err := page.Write(&drawn, page.Input{Now: g.now, Fleet: f, Nodes: g.nodes, Hosts: hosts, Gaps: g.listGaps()}); err != nil {
		g.recordGap("index.html", err)
	}
	g.write("index.html", drawn.Bytes())
}

func pluralVerb(names []string) string {
	if len(names) == 1 {
		return "is"
	}
	return "are"
}

// printSummary prints a summary of the collected data and the next action of the administrator.
func (c *command) printSummary(g *gatherer, place string, f fleet.Fleet, chosen int) error {
	lines := []string{fmt.Sprintf("%s: %d files of %s. Start with index.html", place, g.files, sanitize.Pluralize(chosen, "host"))}
	dead, troubled := g.unhealthyInstances(f.Instances)
	for _, group := range []struct {
		are   string
		names []string
	}{{pluralVerb(dead) + " unreachable", dead}, {pluralVerb(troubled) + " not Ready for another reason", troubled}} {
		if len(group.names) > 0 {
			lines = append(lines, fmt.Sprintf("%d of %s %s: %s", len(group.names), sanitize.Pluralize(len(f.Instances), "host"), group.are,
				strings.Join(group.names, ", ")))
		}
	}
	if gaps := g.listGaps(); len(gaps) > 0 {
		lines = append(lines, fmt.Sprintf("%s could not be read, see gaps.txt. The first: %s", sanitize.Pluralize(len(gaps), "thing"), gaps[0]))
	}
	_, err := fmt.Fprintln(c.Out, strings.Join(lines, "\n"))
	return err
}
