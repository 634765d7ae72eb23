package host_test

import (
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

//
func TestIsDefenderActive(t *testing.T) {
	service := func(name string, state host.ServiceState, pid int) []host.Service {
		return []host.Service{
			{ServiceConfig: host.ServiceConfig{Name: "mpssvc", DisplayName: "Windows Defender Firewall"},
				State: host.ServiceRunning, PID: 4},
			{ServiceConfig: host.ServiceConfig{Name: name}, State: state, PID: pid},
		}
	}
	process := func(name string, pid int) []host.Process {
		return []host.Process{{PID: 4, Name: "svchost.exe"}, {PID: pid, Name: name}}
	}
	for name, test := range map[string]struct {
		services  []host.Service
		processes []host.Process
		want      bool
	}{
		"a host on which it runs": {service("WinDefend", host.ServiceRunning, 8),
			process("MsMpEng.exe", 8), true},
		"names in another case": {service("windefend", host.ServiceRunning, 8),
			process("msmpeng.EXE", 8), true},
		"a host on which it is installed but stopped": {service("WinDefend", host.ServiceStopped, 0),
			process("sshd.exe", 8), false},
		"a host on which it starts": {service("WinDefend", host.ServiceStartPending, 8),
			process("MsMpEng.exe", 8), false},
		"a host without it": {nil, process("sshd.exe", 8), false},
		"another process named Windows Defender": {service("other", host.ServiceRunning, 8),
			process("Windows Defender Updater.exe", 8), false},
		"another service named WinDefend and more": {service("WinDefendUpdater", host.ServiceRunning, 8),
			process("MsMpEng.exe", 8), false},
		"its program run by hand while it is stopped": {service("WinDefend", host.ServiceStopped, 0),
			process("MsMpEng.exe", 8), false},
		"its service taken over by another program": {service("WinDefend", host.ServiceRunning, 8),
			process("svchost.exe", 8), false},
		"its service in one process, its name on another": {service("WinDefend", host.ServiceRunning, 12),
			process("MsMpEng.exe", 8), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := host.IsDefenderActive(test.services, test.processes); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestExclusion_ComparedCaseInsensitively(t *testing.T) {
	e := host.Exclusion{Kind: host.ExcludeProcess, Value: `C:\k\containerd.exe`}
	if !e.Is(host.Exclusion{Kind: host.ExcludeProcess, Value: `c:\K\CONTAINERD.exe`}) {
		t.Error("case matters")
	}
	if e.Is(host.Exclusion{Kind: host.ExcludePath, Value: e.Value}) {
		t.Error("the kind does not matter")
	}
}
