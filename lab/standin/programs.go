// Package standin contains the programs that simulated Windows hosts run instead of the executables of a
// Windows node. The programs read the real command lines and configuration files, fail in the same cases as the
// real programs, and return the same responses.
package standin

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"hash/maphash"
	"net"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// Options configure the environment of the programs. The zero value of a field means its default.
type Options struct {
	// Clock is the clock for heartbeats, grace periods and retries. Default: the real clock. Certificates
	// always use the real clock.
	Clock clock.WithTicker
	// Dial opens connections to the API server. Default: as the operating system does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Agent is the program of wicd.exe. Default: wicd.exe cannot run.
	Agent func(version string) fake.Program
	// AgentVersion is the version of a real wicd.exe.
	AgentVersion string
	// PodStopTime is the time that containers take to stop on request, at most the grace period of the pod.
	// Default: a second.
	PodStopTime time.Duration
	// ProviderID returns the cloud's ID of a virtual machine by name and address, as in the cloud's metadata
	// service. Default: an ID in the format of Azure with the name.
	ProviderID func(name, address string) string
	// Zone returns the number of the Azure zone of a virtual machine by address, as in the metadata service; ""
	// without a zone. Default: no zones.
	Zone func(address string) string
	// CloudWorks delays cloud-node-manager until it is closed. Default: no delay.
	CloudWorks <-chan struct{}
	// Separate means that the processes of a machine share no memory, as on a real one.
	Separate bool
}

// program simulates an executable.
type program func(ctx context.Context, p *node.Process, e payload.Executable) int

// Programs returns a program table that all hosts share.
func Programs(options Options) fake.ProgramTable {
	return newTable(options).findProgram
}

// Run runs the simulation of an executable in a process until it ends or ctx is done, and returns the exit
// code. The agent is not simulated.
func Run(ctx context.Context, options Options, p *node.Process, e payload.Executable) int {
	run, err := newTable(options).findSimulation(e)
	if err != nil {
		return reportFailure(p, "%v", err)
	}
	return run(ctx, p, e)
}

func newTable(options Options) *table {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.ProviderID == nil {
		options.ProviderID = azureProviderID
	}
	if options.Zone == nil {
		options.Zone = func(string) string { return "" }
	}
	t := &table{Options: options, seed: maphash.MakeSeed(), agents: map[uint64]error{},
		runtimes: map[any]*containerRuntime{}}
	t.programs = map[string]program{
		"containerd.exe":                t.runContainerd,
		"containerd-shim-runhcs-v1.exe": t.runShim,
		"kubelet.exe":                   t.runKubelet,
		"kube-proxy.exe":                t.kubeProxy,
		"kube-log-runner.exe":           t.kubeLogRunner,
		"win-overlay.exe":               printVersion,
		"win-bridge.exe":                printVersion,
		"host-local.exe":                printVersion,
		"hybrid-overlay-node.exe":       t.hybridOverlay,
		"windows_exporter.exe":          t.runExporter,
		"csi-proxy.exe":                 t.csiProxy,
		"azure-cloud-node-manager.exe":  t.cloudNodeManager,
		"ecr-credential-provider.exe":   printVersion,
	}
	return t
}

type table struct {
	Options
	programs map[string]program
	seed     maphash.Seed

	mu       sync.Mutex
	agents   map[uint64]error          // whether real executables are the agent, by hash
	agent    *byte                     // first byte of the last agent: hosts share unmodified file contents
	runtimes map[any]*containerRuntime // by the machine's ID
}

// findProgram returns the program for the content of an executable.
func (t *table) findProgram(content []byte) (fake.Program, error) {
	e, err := payload.ReadExecutable(content)
	if err != nil {
		if agentErr := t.checkAgent(content); agentErr != nil {
			return nil, fmt.Errorf("%w, nor is it the agent: %w", err, agentErr)
		}
		e = payload.Executable{Component: "wicd", File: "wicd.exe", Version: t.AgentVersion}
	}
	if e.File == "wicd.exe" {
		if t.Agent == nil {
			return nil, fmt.Errorf("this lab has no agent to run for wicd.exe: set Options.Agent")
		}
		return t.Agent(e.Version), nil
	}
	run, err := t.findSimulation(e)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, p *fake.Process) int { return run(ctx, t.newProcess(p), e) }, nil
}

// findSimulation returns the simulation of an executable.
func (t *table) findSimulation(e payload.Executable) (program, error) {
	run, ok := t.programs[e.File]
	if !ok {
		return nil, fmt.Errorf("the lab does not know what %s of %s does", e.File, e.Component)
	}
	return func(ctx context.Context, p *node.Process, e payload.Executable) int {
		if slices.Equal(p.Args, []string{"--version"}) {
			return printVersion(ctx, p, e)
		}
		if e.Defect == payload.DefectExits {
			return reportFailure(p, "%s %s: this release is defective", e.Component, e.Version)
		}
		return run(ctx, p, e)
	}, nil
}

// checkAgent reports whether an executable is the agent, by its build information. The result is cached, because
// fifty hosts run the same file many times.
func (t *table) checkAgent(content []byte) error {
	t.mu.Lock()
	same := len(content) > 0 && t.agent == &content[0]
	t.mu.Unlock()
	if same {
		return nil
	}
	sum := maphash.Bytes(t.seed, content)
	t.mu.Lock()
	defer t.mu.Unlock()
	err, known := t.agents[sum]
	if !known {
		info, readErr := buildinfo.Read(bytes.NewReader(content))
		switch {
		case readErr != nil:
			err = fmt.Errorf("read its build information: %w", readErr)
		case info.Path != payload.AgentPackage:
			err = fmt.Errorf("it is %s", info.Path)
		}
		t.agents[sum] = err
	}
	if err == nil && len(content) > 0 {
		t.agent = &content[0]
	}
	return err
}

func printVersion(_ context.Context, p *node.Process, e payload.Executable) int {
	fmt.Fprintf(p.Stdout, "%s %s\r\n", e.File, e.Version)
	return 0
}

// reportFailure writes the reason for an early end and returns the exit code.
func reportFailure(p *node.Process, format string, args ...any) int {
	fmt.Fprintf(p.Stderr, format+"\r\n", args...)
	return 1
}

// awaitStop waits until the program must stop.
func awaitStop(ctx context.Context) int {
	<-ctx.Done()
	return 0
}

// isServiceFlagValid reports whether a program that runs as a service has the service flag. Without the flag, the real
// program never responds to the service control manager, which ends the program (error 1053).
func isServiceFlagValid(p *node.Process, valid bool) bool { return valid || !p.Service }
