package nodespec

import (
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestIsRunningAs_LogRunnerOrItsProgram(t *testing.T) {
	runner := host.CommandLine(`C:\k\releases\log-1\kube-log-runner.exe`, "-log-file=C:\\var\\log\\kubelet\\kubelet.log",
		"-also-stdout=false", `C:\k\releases\kubelet-1\kubelet.exe`, "--config=C:\\k\\kubelet.conf", "--node-labels=a=b c")
	for name, c := range map[string]struct {
		running, configured string
		want                bool
	}{
		"the runner": {runner, runner, true},
		"the program that it runs, in whatever form": {
			`"C:\k\releases\kubelet-1\kubelet.exe" --config=C:\k\kubelet.conf "--node-labels=a=b c"`, runner, true},
		"not the program with other arguments": {`C:\k\releases\kubelet-1\kubelet.exe --config=C:\k\kubelet.conf`, runner, false},
		"not another version of it": {
			`C:\k\releases\kubelet-2\kubelet.exe --config=C:\k\kubelet.conf "--node-labels=a=b c"`, runner, false},
		"not a part of a command line without runner": {`C:\a.exe x`, `C:\b.exe C:\a.exe x`, false},
		"not the runner without a program":            {"", `C:\kube-log-runner.exe -log-file=C:\a.log`, false},
		"a service without runner":                    {`C:\a.exe x`, `C:\a.exe x`, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsRunningAs(c.running, c.configured); got != c.want {
				t.Errorf("it is %t", got)
			}
		})
	}
	t.Run("each service of a node is found in both forms", func(t *testing.T) {
		spec, err := Make(testInputs())
		if err != nil {
			t.Fatal(err)
		}
		under := 0
		for _, service := range spec.Services {
			if child := CommandUnderLogRunner(service.CommandLine); child != nil {
				under++
				if !IsRunningAs(host.CommandLine(child...), service.CommandLine) {
					t.Errorf("service %s: %v", service.Name, child)
				}
			}
		}
		if under == 0 {
			t.Error("no service is under kube-log-runner")
		}
	})
}
