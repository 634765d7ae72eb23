// Package hosttest is the behaviour contract of package host: one suite that every implementation passes. On a real machine it
// touches only the folder C:\wmco-contract-test and services, rules and variables whose names begin with "wmco-contract-".
package hosttest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Scratch is the folder in which the suite works. Every test finds it empty and takes it away.
const Scratch = `C:\wmco-contract-test`

const (
	serviceOne = "wmco-contract-one"
	serviceTwo = "wmco-contract-two"
	ruleName   = "wmco-contract-rule"
	variable   = "WMCO_CONTRACT_TEST"
)

// patience is how long a condition may take to come true on a slow machine.
const patience = 30 * time.Second

// Capabilities say which parts of the contract the implementation under test can show. Tests of the others are skipped, loudly.
type Capabilities struct {
	// ServiceProgram are the words of a command that runs as a Windows service until it is stopped.
	ServiceProgram []string
	// CrashingProgram are the words of a command that runs as a Windows service and soon exits with the code 7.
	CrashingProgram []string
	Features        bool // optional features can be read
	Firewall        bool
	Links           bool // symbolic links
	Access          bool // access control lists
	FilesInUse      bool // a running executable cannot be removed
	Dependencies    bool // the service control manager starts and stops dependencies
	Recovery        bool // it restarts crashed services
}

// TestHost runs the suite. Open is called for each test; the host's process must outlive the test.
func TestHost(t *testing.T, open func(t *testing.T) (host.Host, Capabilities)) {
	for _, group := range []struct {
		name string
		run  func(*testing.T, func(*testing.T) *suite)
	}{
		{"files", testFiles},
		{"writing files", testWrites},
		{"tree", testTree},
		{"links", testLinks},
		{"files in use", testFilesInUse},
		{"services", testServices},
		{"starting and stopping services", testStarts},
		{"service dependencies", testDependencies},
		{"service recovery", testRecovery},
		{"system", testSystem},
		{"environment", testEnvironment},
		{"firewall", testFirewall},
		{"processes", testProcesses},
	} {
		t.Run(group.name, func(t *testing.T) {
			group.run(t, func(t *testing.T) *suite {
				h, can := open(t)
				s := &suite{T: t, Host: h, can: can, ctx: t.Context()}
				s.clean(t.Context())
				// The test's own context is done when its clean-up runs.
				t.Cleanup(func() { s.clean(context.Background()) })
				s.must(h.Tree.MakeDirectory(s.ctx, Scratch, host.AccessInherited))
				return s
			})
		})
	}
}

// suite is one test's host.
type suite struct {
	*testing.T
	host.Host
	can Capabilities
	ctx context.Context
}

// clean takes away what a test may have left.
func (s *suite) clean(ctx context.Context) {
	s.Helper()
	for _, name := range []string{serviceTwo, serviceOne} {
		s.gone(s.Services.Stop(ctx, name))
		s.gone(s.Services.Delete(ctx, name))
	}
	s.must(s.Files.Remove(ctx, Scratch))
	s.must(s.Environment.Unset(ctx, variable))
	if s.can.Firewall {
		s.gone(s.Firewall.DeleteRule(ctx, ruleName))
	}
}

// needs skips a test of something that this implementation cannot show.
func (s *suite) needs(can bool, what string) {
	s.Helper()
	if !can {
		s.Skipf("NOT SHOWN HERE: %s", what)
	}
}

func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// gone accepts success and ErrNotExist.
func (s *suite) gone(err error) {
	s.Helper()
	if err != nil && !errors.Is(err, host.ErrNotExist) {
		s.Fatal(err)
	}
}

func (s *suite) fails(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("got error %v, want %v", err, want)
	}
}

func (s *suite) write(path, content string) {
	s.Helper()
	s.must(s.Files.Write(s.ctx, path, bytes.NewBufferString(content), host.WriteOptions{Access: host.AccessInherited}))
}

func (s *suite) read(path string) string {
	s.Helper()
	reader, err := s.Files.Open(s.ctx, path)
	s.must(err)
	data, err := io.ReadAll(reader)
	s.must(errors.Join(err, reader.Close()))
	return string(data)
}

func (s *suite) service(name string) host.Service {
	s.Helper()
	list, err := s.Services.Query(s.ctx, name)
	s.must(err)
	if len(list) != 1 {
		s.Fatalf("service %s: got %d answers, want 1", name, len(list))
	}
	return list[0]
}

// eventually asks until the condition holds; the interfaces have nothing to wait on.
func (s *suite) eventually(what string, condition func() bool) {
	s.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for !condition() {
		select {
		case <-again.C:
		case <-deadline.C:
			s.Fatalf("%s: not after %s", what, patience)
		}
	}
}

// is compares two values.
func is[T comparable](s *suite, what string, got, want T) {
	s.Helper()
	if got != want {
		s.Errorf("%s: got %v, want %v", what, got, want)
	}
}
