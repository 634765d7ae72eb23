package hosttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

const (
	memoryFile    = Scratch + `\reboot.json`
	rebootName    = "wmco-contract"
	rebootFeature = "Containers"
)

// memory is the state that the first half of the reboot behaviors stores on the machine for the second.
type memory struct {
	Before   host.SystemInfo     `json:"before"`
	Failures map[string][]string `json:"failures"` // of the first half, by behavior
	Absent   map[string]string   `json:"absent"`
	Called   map[string]bool     `json:"called"` // operations of the first half
	Feature  host.FeatureState   `json:"feature"`
}

// rebootBehavior is a behavior with one half before and one half after a reboot.
type rebootBehavior struct {
	Behavior
	before func(*suite, *memory)
	after  func(*suite, memory)
}

// RebootBehaviors returns the part of the contract that needs a reboot. It runs in two halves: ArmReboot, then
// CheckReboot.
func RebootBehaviors() []Behavior {
	var all []Behavior
	for _, b := range rebootBehaviors() {
		all = append(all, b.Behavior)
	}
	return all
}

func rebootBehaviors() []rebootBehavior {
	return []rebootBehavior{
		{Behavior{"Power.Reboot", "a machine that was restarted has booted anew and is still the same", nil},
			func(s *suite, m *memory) { m.Called["Power.Reboot"] = true }, // ArmReboot calls it
			func(s *suite, m memory) {
				after := s.info()
				is(s, "another boot ID", after.BootID != m.Before.BootID, true)
				is(s, "booted later", after.BootTime.After(m.Before.BootTime), true)
				is(s, "machine ID", after.MachineID, m.Before.MachineID)
			}},
		{Behavior{"System.SetHostName", "a new name is in force after a reboot", nil},
			func(s *suite, _ *memory) { s.must(s.System.SetHostName(s.ctx, rebootName)) },
			func(s *suite, _ memory) {
				info := s.info()
				is(s, "host name", strings.ToLower(info.HostName), rebootName)
				is(s, "pending host name", info.PendingHostName, "")
			}},
		{Behavior{"Features.Enable", "a feature that needs a reboot is pending before it and enabled after it", nil},
			enableBefore,
			func(s *suite, _ memory) { is(s, "state", s.feature(rebootFeature), host.FeatureEnabled) }},
		{Behavior{"Files.Write", "what was written is there after a reboot", nil},
			func(s *suite, _ *memory) { s.write(file, "still here") },
			func(s *suite, _ memory) { is(s, "content", s.read(file), "still here") }},
		{Behavior{"Services.Configure", "an automatic service runs after a reboot, a manual one does not", nil},
			func(s *suite, _ *memory) {
				config := s.reporting(nil)
				config.StartType = host.StartAutomatic
				s.configure(config)
				s.start(s.idle(serviceTwo))
			},
			func(s *suite, _ memory) {
				s.eventually("running", func() bool { return s.service(serviceOne).State == host.ServiceRunning })
				is(s, "state of the manual one", s.service(serviceTwo).State, host.ServiceStopped)
			}},
		{Behavior{"Roots.Add", "an added certificate is in the store after a reboot", nil},
			func(s *suite, _ *memory) {
				a, _ := s.roots()
				s.must(s.Roots.Add(s.ctx, a))
			},
			func(s *suite, _ memory) {
				a, _ := s.roots()
				is(s, "in the store", s.trusted(a), 1)
			}},
		{Behavior{"Routes.Add", "an added route is gone after a reboot", nil},
			func(s *suite, _ *memory) {
				s.viaDefault()
				s.must(s.Routes.Add(s.ctx, routeTo))
				is(s, "the route", s.routed(routeTo), true)
			},
			func(s *suite, _ memory) { is(s, "the route", s.routed(routeTo), false) }},
		{Behavior{"Environment.Set", "services see a new variable of the machine after a reboot", nil},
			func(s *suite, _ *memory) { s.must(s.Environment.Set(s.ctx, variable, "after the reboot")) },
			func(s *suite, _ memory) {
				is(s, "seen", slices.Contains(s.readAccount().Environment, variable+"=after the reboot"), true)
			}},
	}
}

func enableBefore(s *suite, m *memory) {
	m.Feature = s.feature(rebootFeature)
	if m.Feature != host.FeatureDisabled {
		s.notHere("the feature %s is %s already", rebootFeature, m.Feature)
	}
	s.must(s.Features.Enable(s.ctx, rebootFeature))
	is(s, "state", s.feature(rebootFeature), host.FeatureEnablePending)
	is(s, "reboot pending", s.info().RebootPending, true)
}

// ArmReboot runs the first half of the reboot behaviors and RESTARTS THE MACHINE. The caller's process ends with the
// machine.
func ArmReboot(ctx context.Context, machine Machine) error {
	if err := prepare(ctx, machine.Host); err != nil {
		return err
	}
	before, err := machine.Host.System.Info(ctx)
	if err != nil {
		return err
	}
	m := memory{Before: before, Failures: map[string][]string{}, Absent: map[string]string{}, Called: map[string]bool{}}
	for _, b := range rebootBehaviors() {
		called := &calls{}
		limited, cancel := context.WithTimeout(ctx, allowance)
		s := &suite{Host: called.record(machine.Host), machine: machine, ctx: limited}
		s.protect(func() { b.before(s, &m) })
		cancel()
		if called.made(b.Operation) {
			m.Called[b.Operation] = true
		}
		first := s.outcome()
		m.Failures[b.ID()], m.Absent[b.ID()] = first.failures, first.absent
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	err = machine.Host.Files.Write(ctx, memoryFile, strings.NewReader(string(data)), host.WriteOptions{})
	if err != nil {
		return fmt.Errorf("remember the state before the reboot: %w", err)
	}
	return machine.Host.Power.Reboot(ctx, "second half of the host contract suite")
}

// CheckReboot runs the second half of the reboot behaviors on the restarted machine and returns the results.
// Restoring the old computer name then needs another reboot.
func CheckReboot(t *testing.T, subject Subject) Report {
	t.Helper()
	machine := subject.Open(t)
	m, err := remember(t.Context(), machine)
	if err != nil {
		t.Fatal(err)
	}
	subject.Open = func(*testing.T) Machine { return machine }
	var behaviors []Behavior
	for _, b := range rebootBehaviors() {
		b.check = func(s *suite) {
			if m.Absent[b.ID()] != "" {
				s.notHere("%s", m.Absent[b.ID()])
			}
			for _, failure := range m.Failures[b.ID()] {
				s.Fatalf("before the reboot: %s", failure)
			}
			if !m.Called[b.Operation] {
				s.Errorf("the first half never called %s", b.Operation)
			}
			b.after(s, m)
		}
		behaviors = append(behaviors, b.Behavior)
	}
	report := subject.run(t, behaviors, false)
	if err := giveBack(machine, m); err != nil {
		t.Errorf("clean up after the reboot test: %v", err)
	}
	return report
}

// remember reads the state stored by the first half.
func remember(ctx context.Context, machine Machine) (m memory, err error) {
	reader, err := machine.Host.Files.Open(ctx, memoryFile)
	if err != nil {
		return m, fmt.Errorf("there is no first half of the reboot test on this machine: %w", err)
	}
	err = json.NewDecoder(reader).Decode(&m)
	return m, errors.Join(err, reader.Close())
}

// giveBack reverts the changes of the reboot test to the machine.
func giveBack(machine Machine, m memory) error {
	ctx, cancel := context.WithTimeout(context.Background(), allowance)
	defer cancel()
	left := []error{machine.Host.System.SetHostName(ctx, m.Before.HostName), (&suite{Host: machine.Host}).clean(ctx)}
	for _, der := range testCertificates() {
		left = append(left, machine.Host.Roots.Remove(ctx, fingerprintOf(der)))
	}
	if m.Feature == host.FeatureDisabled {
		left = append(left, machine.Host.Features.Disable(ctx, rebootFeature))
	}
	return errors.Join(left...)
}
