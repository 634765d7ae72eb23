package fleet

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/lab/linuxns"
)

// fleetSize is the number of hosts in the test.
const fleetSize = 3

// TestMain runs the tests in a network like the network of a measured fleet.
func TestMain(m *testing.M) {
	os.Exit(linuxns.RunTests(networkConfig(fleetSize, buildPath("lab-controlplane")), m.Run))
}

func buildPath(name string) string {
	path, err := filepath.Abs(filepath.Join("..", "..", "..", "build", name))
	if err != nil {
		panic(err)
	}
	return path
}

// A small fleet is really measured, for all scenarios, with the programs that `make` builds.
func TestRun_MeasuresFleet(t *testing.T) {
	dir := t.TempDir()
	result, err := Run(t.Context(), Options{
		Hosts: fleetSize, Scenarios: AllScenarios(), Operator: buildPath("wmco"), Agent: buildPath("wicd.exe"), SizePercent: 100, MaxUnavailable: 2,
		Timeout: 3 * time.Minute, IdleDuration: time.Second, Log: filepath.Join(dir, "operator.log"), Dir: dir, Progress: t.Logf,
	})
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "operator.log"))
		t.Fatalf("%v\n%s", err, log[max(0, len(log)-4000):])
	}
	phase := func(scenario Scenario) Phase {
		p, known := result.Phase(scenario)
		if !known {
			t.Fatalf("%s was not measured", scenario)
		}
		return p
	}
	t.Run("all hosts join, and each program that works for it has its processor time", func(t *testing.T) {
		join := phase(Join)
		if len(join.Arrivals) != fleetSize || join.Seconds != join.Arrivals[fleetSize-1] || join.Seconds > join.TotalSeconds {
			t.Errorf("arrivals %v, %g s of %g s", join.Arrivals, join.Seconds, join.TotalSeconds)
		}
		if join.CPU.Operator <= 0 || join.CPU.ControlPlane <= 0 || join.CPU.Hosts <= 0 {
			t.Errorf("processor time is %+v", join.CPU)
		}
		if join.Reads == 0 || join.Writes == 0 || join.All.Connections < fleetSize || join.Worst.Received < result.PayloadBytes/10 {
			t.Errorf("%+v", join)
		}
		if m := join.Memory; m == nil || m.Peak < m.Resident || m.Resident < 1<<20 {
			t.Errorf("memory is %+v", m)
		}
		if join.ReconcileTime <= 0 {
			t.Error("it is not known how long reconciles took")
		}
	})
	t.Run("with nothing to do, nobody is contacted and nothing is written", func(t *testing.T) {
		if idle := phase(Idle); idle.All.Connections != 0 || idle.Writes != 0 || idle.Seconds != 1 {
			t.Errorf("%+v", idle)
		}
	})
	t.Run("a restart is seen as one, and contacts no host", func(t *testing.T) {
		if restart := phase(Restart); restart.Reads == 0 || restart.All.Connections != 0 || restart.CPU.Operator <= 0 {
			t.Errorf("%+v", restart)
		}
	})
	t.Run("a setting and another key reach each host", func(t *testing.T) {
		for _, scenario := range []Scenario{Setting, Rotation} {
			if p := phase(scenario); len(p.Arrivals) != fleetSize || p.All.Connections < fleetSize {
				t.Errorf("%s: %+v", scenario, p)
			}
		}
	})
	t.Run("another version with the same programs touches no host", func(t *testing.T) {
		if same := phase(SamePrograms); len(same.Arrivals) != fleetSize || same.All.Received != 0 || same.Memory != nil {
			t.Errorf("%+v", same)
		}
	})
	t.Run("an upgrade sends each host something, and restarts services", func(t *testing.T) {
		if upgrade := phase(Upgrade); len(upgrade.Arrivals) != fleetSize || upgrade.All.Received == 0 || upgrade.All.Services < fleetSize {
			t.Errorf("%+v", upgrade)
		}
	})
}
