package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

func TestFindLogin(t *testing.T) {
	at := func(second int) time.Time { return now.Add(time.Duration(second) * time.Second) }
	processes := []host.Process{
		{PID: 4, Name: "System"}, {PID: 8, Parent: 4, Name: "services.exe", Started: at(1)},
		{PID: 40, Parent: 8, Name: "sshd.exe", Started: at(2)}, {PID: 44, Parent: 40, Name: "sshd.exe", Started: at(9)},
		{PID: 48, Parent: 44, Name: "cmd.exe", Started: at(10)}, {PID: 52, Parent: 48, Name: "wicd.exe", Started: at(11)},
		{PID: 60, Parent: 8, Name: "svchost.exe", Started: at(2)}, {PID: 64, Parent: 60, Name: "wicd.exe", Started: at(12)},
		{PID: 70, Parent: 8, Name: "wicd.exe", Started: at(3)},
		{PID: 80, Parent: 84, Name: "wicd.exe", Started: at(5)}, {PID: 84, Parent: 8, Name: "notepad.exe", Started: at(6)},
		{PID: 90, Parent: 8, Name: "wicd.exe", Started: at(7)},
		{PID: 96, Parent: 100, Name: "a.exe"}, {PID: 100, Parent: 96, Name: "b.exe"},
	}
	service := func(name string, pid int, start host.StartType) host.Service {
		return host.Service{ServiceConfig: host.ServiceConfig{Name: name, StartType: start}, PID: pid, State: host.ServiceRunning}
	}
	services := []host.Service{
		service("MySSH", 40, host.StartManual), service("Winmgmt", 60, host.StartAutomatic),
		service("Schedule", 60, host.StartAutomatic), service(nodespec.ServiceAgent, 70, host.StartAutomatic),
		{ServiceConfig: host.ServiceConfig{Name: "stopped"}, State: host.ServiceStopped},
	}
	for name, c := range map[string]struct {
		self    int
		want    plan.LoginFacts
		unknown string
	}{
		"an SSH server, whatever its name, through its own processes and a shell": {self: 52,
			want: plan.LoginFacts{Service: "MySSH", StartType: host.StartManual}},
		"the agent's own service, to which nobody logs in": {self: 70},
		"not one of several services of a process":         {self: 64, unknown: "Winmgmt, Schedule"},
		"not a process that has the ID of an ended parent": {self: 80, unknown: "process 80 (wicd.exe), from which the agent descends, has ended"},
		"nothing above what Windows itself starts":         {self: 90, unknown: "the parent of process 4 (System)"},
		"no process": {self: 1, unknown: "process 1 is not in the list"},
		"a circle":   {self: 96, unknown: "descends from itself"},
	} {
		t.Run(name, func(t *testing.T) {
			got := plan.FindLogin(c.self, processes, services)
			if !strings.Contains(got.Unknown, c.unknown) || c.unknown == "" && got.Unknown != "" {
				t.Errorf("unknown: %q, want %q", got.Unknown, c.unknown)
			}
			got.Unknown = ""
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// byHand returns a host with an SSH server that was started manually and does not start at boot.
func byHand() *model {
	m := newModel()
	m.Services["sshd"] = host.Service{
		ServiceConfig: host.ServiceConfig{Name: "sshd", CommandLine: "sshd.exe", StartType: host.StartManual},
		State:         host.ServiceRunning, RunningCommandLine: "sshd.exe",
	}
	m.Login = plan.LoginFacts{Service: "sshd", StartType: host.StartManual}
	return m
}

func TestReboot_OnlyWithAutomaticSSHServer(t *testing.T) {
	m := byHand()
	checked := 0
	m.before = func(step plan.Step) {
		if step.Reboots {
			checked++
			if start := m.Services["sshd"].StartType; start != host.StartAutomatic {
				t.Errorf("%s with the start type %s", step.Name, start)
			}
		}
	}
	convergeModel(t, m, smallSpec(), -1)
	if checked == 0 {
		t.Fatal("nothing restarted the host")
	}
	if m.Services["sshd"].State != host.ServiceRunning {
		t.Error("the SSH server does not run after the restart")
	}
	t.Run("the step is not repeated, and the ledger knows the start type", func(t *testing.T) {
		if m.Ledger.StartTypes["sshd"] != host.StartManual || len(plan.Make(m.Facts, smallSpec()).Steps) > 0 {
			t.Errorf("the ledger has %v", m.Ledger.StartTypes)
		}
	})
	t.Run("a removal gives it back when no restart is to come any more", func(t *testing.T) {
		before := checked
		restoreModel(t, m, -1)
		if checked == before {
			t.Error("nothing restarted the host")
		}
		if start := m.Services["sshd"].StartType; start != host.StartManual {
			t.Errorf("its start type is %s", start)
		}
	})
	t.Run("a restart that the operator was asked for comes after it too", func(t *testing.T) {
		p := plan.Restart(plan.LoginFacts{Service: "sshd", StartType: host.StartDisabled}, "because")
		if len(p.Steps) != 2 || p.Steps[0].Name != "SetStartType sshd" || !p.Steps[1].Reboots {
			t.Errorf("the plan is %+v", p.Steps)
		}
	})
	t.Run("where the service is not known, nothing is guessed", func(t *testing.T) {
		m := byHand()
		m.Login = plan.LoginFacts{Unknown: "its parent has ended"}
		for _, step := range plan.Make(m.Facts, smallSpec()).Steps {
			if strings.HasPrefix(step.Name, "SetStartType") {
				t.Errorf("got step %s", step.Name)
			}
		}
	})
}
