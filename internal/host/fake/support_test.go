package fake

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

// programs is a table of programs by the content of their executables.
type programs map[string]Program

func (p programs) findProgram(content []byte) (Program, error) {
	if program := p[string(content)]; program != nil {
		return program, nil
	}
	return nil, errors.New("no such program")
}

// runIdle runs until it is stopped.
func runIdle(ctx context.Context, _ *Process) int { <-ctx.Done(); return 0 }

// rig is a running machine with a fake clock.
type rig struct {
	*testing.T
	*Machine
	host.Host
	clock *clocktesting.FakeClock
	ctx   context.Context
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// bootMachine creates and boots a machine with C:\<name>.exe for each program.
func bootMachine(t *testing.T, known programs, change ...func(*Options)) *rig {
	t.Helper()
	ticking := clocktesting.NewFakeClock(epoch)
	options := Options{Name: "win-a", Addresses: []string{"10.0.0.4"}, Clock: clock.WithTicker(ticking),
		Programs: known.findProgram}
	for _, each := range change {
		each(&options)
	}
	m := New(options)
	t.Cleanup(m.Close)
	for name := range known {
		if err := m.Drive().WriteFile(`C:\`+name+`.exe`, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	if err := m.Boot(ctx); err != nil {
		t.Fatal(err)
	}
	return &rig{T: t, Machine: m, Host: m.Host(), clock: ticking, ctx: ctx}
}

func (r *rig) requireNoError(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) requireError(err, want error) {
	r.Helper()
	if !errors.Is(err, want) {
		r.Fatalf("got error %v, want %v", err, want)
	}
}

func (r *rig) awaitCondition(condition func() bool) {
	r.Helper()
	r.requireNoError(r.WaitFor(r.ctx, func(*Machine) bool { return condition() }))
}

// installService configures a service that runs C:\<program>.exe.
func (r *rig) installService(name, program string, change ...func(*host.ServiceConfig)) {
	r.Helper()
	config := host.ServiceConfig{Name: name, DisplayName: name, CommandLine: `C:\` + program + `.exe`,
		StartType: host.StartManual}
	for _, each := range change {
		each(&config)
	}
	r.requireNoError(r.Services.Configure(r.ctx, config))
}

func (r *rig) serviceState(name string) host.ServiceState {
	service, _ := r.Service(name)
	return service.State
}

func (r *rig) waitState(name string, state host.ServiceState) {
	r.Helper()
	r.awaitCondition(func() bool { return r.serviceState(name) == state })
}

func (r *rig) write(path, content string) {
	r.Helper()
	r.requireNoError(r.Files.Write(r.ctx, path, strings.NewReader(content), host.WriteOptions{}))
}

func (r *rig) read(path string) string {
	r.Helper()
	data, err := r.Drive().ReadFile(path)
	r.requireNoError(err)
	return string(data)
}

// startIdleProcess runs and returns a process whose program idles until the process is ended.
func (r *rig) startIdleProcess(stdout io.Writer) *Process {
	r.Helper()
	started := make(chan *Process, 1)
	table := r.options.Programs
	r.options.Programs = func([]byte) (Program, error) {
		return func(ctx context.Context, p *Process) int { started <- p; <-ctx.Done(); return 0 }, nil
	}
	r.requireNoError(r.Drive().WriteFile(`C:\held.exe`, []byte("held")))
	go func() { _, _ = r.Exec(r.ctx, ExecRequest{Path: `C:\held.exe`, Stdout: stdout}) }()
	p := <-started
	r.options.Programs = table
	return p
}
