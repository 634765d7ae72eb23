// Package agent is what runs on a Windows host: it gathers facts, has a plan made of them, does its steps, proves that the node works
// and gives the host back. As a Windows service it repairs drift. It speaks to Windows only through package host.
package agent

import (
	"context"
	"fmt"
	"io"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// Process is what the agent's process has from its surroundings. Only API and Ready may be nil.
type Process struct {
	Host       host.Host
	Args       []string // after the program's name
	Executable string   // the program's own path
	Version    string
	Stdout     io.Writer // takes the answer of a verb
	Stderr     io.Writer // takes the log of the service
	Clock      clock.WithTicker
	Rand       io.Reader // for keys
	// Log says how the service's log rotates. The zero value means DefaultLogSettings.
	Log LogSettings
	// API takes the Node's condition WindowsConfiguration to the API server; nil for nowhere.
	API APIServer
	// Ready is called in service mode when the service runs.
	Ready func()
}

// Main runs one verb, or the service until ctx is done. The exit code is 0 or not, without further meaning: the answer says the rest.
func Main(ctx context.Context, p Process) (exitCode int) {
	in, err := parse(p.Args)
	if err != nil {
		_, _ = fmt.Fprintln(p.Stderr, err)
		(&answer{out: p.Stdout, clock: p.Clock}).failure(&verb.Failure{Reason: verb.ReasonInvalidInput, Message: err.Error()})
		return 1
	}
	a := newAgent(p)
	switch in.verb {
	case versionVerb:
		_, _ = fmt.Fprintln(p.Stdout, p.Version)
		return 0
	case verb.Service:
		return a.serve(ctx, p)
	}
	if err := a.run(ctx, in); err != nil {
		a.answer.failure(failureOf("", err))
		return 1
	}
	return 0
}

// agent is one run of the agent.
type agent struct {
	host       host.Host
	clock      clock.WithTicker
	rand       io.Reader
	version    string
	executable string
	answer     *answer
	store      store
	digest     string // of the own program, once it was read
	seen       antivirusView
	asked      featureView
	booting    bool // the node's start after a boot is under way: the Host Networking Service need not answer yet
}

func newAgent(p Process) *agent {
	return &agent{
		host: p.Host, clock: p.Clock, rand: p.Rand, version: p.Version, executable: p.Executable,
		answer: &answer{out: p.Stdout, clock: p.Clock}, store: store{p.Host.Files},
	}
}

// run does a verb and writes its answer, but for the failure.
func (a *agent) run(ctx context.Context, in input) error {
	info, err := a.host.System.Info(ctx)
	a.answer.hello(verb.Hello{Version: a.version, Verb: in.verb, BootID: info.BootID, PID: a.host.Processes.Self()})
	if err != nil {
		return fmt.Errorf("ask Windows about the system: %w", err)
	}
	switch in.verb {
	case verb.Facts:
		return a.tellFacts(ctx, in)
	case verb.Plan:
		return a.tellPlan(ctx, in)
	}
	release, err := a.acquire(ctx, in.verb, info.BootID)
	if err != nil {
		return err
	}
	defer release()
	switch in.verb {
	case verb.Apply:
		return a.apply(ctx, in)
	case verb.Verify:
		return a.verify(ctx)
	case verb.Renew:
		return a.renew(ctx, in)
	case verb.Rollback:
		return a.rollback(ctx, in.digest)
	case verb.Settle:
		return a.settle(ctx)
	case verb.Reboot:
		return a.reboot(ctx, in.bootID, info.BootID)
	default:
		return a.remove(ctx)
	}
}

// tellFacts says what the host is. It changes nothing but what keeps others from the agent's own folder: the operator is about to send what
// only administrators may read.
func (a *agent) tellFacts(ctx context.Context, in input) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	attempt, name := a.beginAttempt(ctx, in.apiServer), a.beginCloudName(ctx, in.platform)
	if err := a.guardOwnFolder(ctx); err != nil {
		return err
	}
	facts, err := a.gather(ctx, nil)
	if err != nil {
		return err
	}
	facts.APIServer, facts.CloudName = <-attempt, <-name
	a.answer.result(verb.Result{Facts: &facts})
	return nil
}
