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
	rebootStateFile = Scratch + `\reboot.json`
	rebootName      = "wmco-contract"
	rebootFeature   = "Containers"
)

// rebootState is the state that the first half of the reboot behaviors stores on the machine for the second.
type rebootState struct {
	Before   host.SystemInfo     `json:"before"`
	Failures map[string][]string `json:"failures"` // of the first half, by behavior
	Absent   map[string]string   `json:"absent"`
	Called   map[string]bool     `json:"called"` // operations of the first half
	Feature  host.FeatureState   `json:"feature"`
}

// rebootBehavior is a behavior with one half before and one half after a reboot.
type rebootBehavior struct {
	Behavior
	before func(*suite, *rebootState)
	after  func(*suite, rebootState)
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
		{Behavior{"Power.Reboot", "a restarted machine has a new boot ID and the same machine ID", nil},
			func(s *suite, m *rebootState) { m.Called["Power.Reboot"] = true }, // ArmReboot calls it
			func(s *suite, m rebootState) {
				after := s.systemInfo()
				expectEqual(s, "new boot ID", after.BootID != m.Before.BootID, true)
				expectEqual(s, "booted later", after.BootTime.After(m.Before.BootTime), true)
				expectEqual(s, "machine ID", after.MachineID, m.Before.MachineID)
			}},
		{Behavior{"System.SetHostName", "a new name takes effect after a reboot", nil},
			func(s *suite, _ *rebootState) { s.requireNoError(s.System.SetHostName(s.ctx, rebootName)) },
			func(s *suite, _ rebootState) {
				info := s.systemInfo()
				expectEqual(s, "host name", strings.ToLower(info.HostName), rebootName)
				expectEqual(s, "pending host name", info.PendingHostName, "")
			}},
		{Behavior{"Features.Enable", "a feature with reboot is pending before the reboot and enabled afterwards", nil},
			enableBefore,
			func(s *suite, _ rebootState) {
				expectEqual(s, "state", s.featureState(rebootFeature), host.FeatureEnabled)
			}},
		{Behavior{"Files.Write", "a written file exists after a reboot", nil},
			func(s *suite, _ *rebootState) { s.write(file, "still here") },
			func(s *suite, _ rebootState) { expectEqual(s, "content", s.read(file), "still here") }},
		{Behavior{"Services.Configure", "after a reboot an automatic service runs, and a manual service is stopped", nil},
			func(s *suite, _ *rebootState) {
				config := s.reportingServiceConfig(nil)
				config.StartType = host.StartAutomatic
				s.configureService(config)
				s.start(s.idleServiceConfig(serviceTwo))
			},
			func(s *suite, _ rebootState) {
				s.waitUntil("running", func() bool { return s.queryService(serviceOne).State == host.ServiceRunning })
				expectEqual(s, "state of the manual service", s.queryService(serviceTwo).State, host.ServiceStopped)
			}},
		{Behavior{"Roots.Add", "an added certificate is in the store after a reboot", nil},
			func(s *suite, _ *rebootState) {
				a, _ := s.borrowRoots()
				s.requireNoError(s.Roots.Add(s.ctx, a))
			},
			func(s *suite, _ rebootState) {
				a, _ := s.borrowRoots()
				expectEqual(s, "in the store", s.countTrusted(a), 1)
			}},
		{Behavior{"Routes.Add", "an added route no longer exists after a reboot", nil},
			func(s *suite, _ *rebootState) {
				s.viaDefault()
				s.requireNoError(s.Routes.Add(s.ctx, routeTo))
				expectEqual(s, "the route", s.hasRoute(routeTo), true)
			},
			func(s *suite, _ rebootState) { expectEqual(s, "the route", s.hasRoute(routeTo), false) }},
		{Behavior{"Environment.Set", "services receive a new machine-wide variable after a reboot", nil},
			func(s *suite, _ *rebootState) {
				s.requireNoError(s.Environment.Set(s.ctx, variable, "after the reboot"))
			},
			func(s *suite, _ rebootState) {
				expectEqual(s, "seen", slices.Contains(s.readAccount().Environment, variable+"=after the reboot"), true)
			}},
	}
}

func enableBefore(s *suite, m *rebootState) {
	m.Feature = s.featureState(rebootFeature)
	if m.Feature != host.FeatureDisabled {
		s.skipBehavior("feature %s is already %s", rebootFeature, m.Feature)
	}
	s.requireNoError(s.Features.Enable(s.ctx, rebootFeature))
	expectEqual(s, "state", s.featureState(rebootFeature), host.FeatureEnablePending)
	expectEqual(s, "reboot pending", s.systemInfo().RebootPending, true)
}

// ArmReboot runs the first half of the reboot behaviors and RESTARTS THE MACHINE. The caller's process ends with the
// machine.
func ArmReboot(ctx context.Context, machine Machine) error {
	if err := prepareMachine(ctx, machine.Host); err != nil {
		return err
	}
	before, err := machine.Host.System.Info(ctx)
	if err != nil {
		return err
	}
	m := rebootState{Before: before, Failures: map[string][]string{}, Absent: map[string]string{}, Called: map[string]bool{}}
	for _, b := range rebootBehaviors() {
		called := &calls{}
		limited, cancel := context.WithTimeout(ctx, behaviorTimeout)
		s := &suite{Host: called.wrapHost(machine.Host), machine: machine, ctx: limited}
		s.runProtected(func() { b.before(s, &m) })
		cancel()
		if called.hasCall(b.Operation) {
			m.Called[b.Operation] = true
		}
		first := s.collectOutcome()
		m.Failures[b.ID()], m.Absent[b.ID()] = first.failures, first.absent
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	err = machine.Host.Files.Write(ctx, rebootStateFile, strings.NewReader(string(data)), host.WriteOptions{})
	if err != nil {
		return fmt.Errorf("store the state before the reboot: %w", err)
	}
	return machine.Host.Power.Reboot(ctx, "second half of the host contract suite")
}

// CheckReboot runs the second half of the reboot behaviors on the restarted machine and returns the results.
// Restoring the old computer name then needs another reboot.
func CheckReboot(t *testing.T, subject Subject) Report {
	t.Helper()
	machine := subject.Open(t)
	m, err := readRebootState(t.Context(), machine)
	if err != nil {
		t.Fatal(err)
	}
	subject.Open = func(*testing.T) Machine { return machine }
	var behaviors []Behavior
	for _, b := range rebootBehaviors() {
		b.check = func(s *suite) {
			if m.Absent[b.ID()] != "" {
				s.skipBehavior("%s", m.Absent[b.ID()])
			}
			for _, failure := range m.Failures[b.ID()] {
				s.Fatalf("before the reboot: %s", failure)
			}
			if !m.Called[b.Operation] {
				s.Errorf("the first half did not call %s", b.Operation)
			}
			b.after(s, m)
		}
		behaviors = append(behaviors, b.Behavior)
	}
	report := subject.run(t, behaviors, false)
	if err := restoreMachine(machine, m); err != nil {
		t.Errorf("clean up after the reboot test: %v", err)
	}
	return report
}

// readRebootState reads the state stored by the first half.
func readRebootState(ctx context.Context, machine Machine) (m rebootState, err error) {
	reader, err := machine.Host.Files.Open(ctx, rebootStateFile)
	if err != nil {
		return m, fmt.Errorf("the first half of the reboot test was not run on this machine: %w", err)
	}
	err = json.NewDecoder(reader).Decode(&m)
	return m, errors.Join(err, reader.Close())
}

// restoreMachine reverts the changes of the reboot test to the machine.
func restoreMachine(machine Machine, m rebootState) error {
	ctx, cancel := context.WithTimeout(context.Background(), behaviorTimeout)
	defer cancel()
	left := []error{machine.Host.System.SetHostName(ctx, m.Before.HostName), (&suite{Host: machine.Host}).cleanUp(ctx)}
	for _, der := range testCertificates() {
		left = append(left, machine.Host.Roots.Remove(ctx, fingerprintOf(der)))
	}
	if m.Feature == host.FeatureDisabled {
		left = append(left, machine.Host.Features.Disable(ctx, rebootFeature))
	}
	return errors.Join(left...)
}
