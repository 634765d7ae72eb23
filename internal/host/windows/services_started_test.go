package windows

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestFindRelatedProcesses(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	list := []host.Process{
		{PID: 0, Name: "[System Process]"}, {PID: 8, Name: "services.exe", Path: `C:\Windows\System32\services.exe`},
		{PID: 20, Parent: 8, Path: `C:\k\r\kube-log-runner.exe`, Started: at(5)},
		{PID: 24, Parent: 20, Path: `C:\K\r\kubelet.exe`, Started: at(6)},
		{PID: 28, Parent: 24, Path: `C:\k\ecr-credential-provider.exe`, Started: at(7)},
		{PID: 32, Parent: 20, Path: `C:\k\r\kubelet.exe`, Started: at(4)}, // the ID of its parent has been reused
		{PID: 40, Parent: 8, Path: `C:\k\c\containerd.exe`, Started: at(5)},
		{PID: 44, Parent: 40, Path: `C:\k\c\containerd-shim-runhcs-v1.exe`, Started: at(6)},
	}
	const kubelet = `C:\k\r\kube-log-runner.exe -log-file=C:\a.log C:\k\r\kubelet.exe --windows-service`
	for name, c := range map[string]struct {
		pid  int
		line string
		want []int
	}{
		"the program under a runner":                           {20, kubelet, []int{24}},
		"the runner, where Windows shows the program":          {24, kubelet, []int{20}},
		"no shim of containerd, whose containers are to go on": {40, `C:\k\c\containerd.exe --config C:\k\c\containerd.toml --run-service`, nil},
		"nothing of a service without a process":               {0, kubelet, nil},
		"nothing of a process that has ended":                  {99, kubelet, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			for _, process := range findRelatedProcesses(c.pid, c.line, list) {
				got = append(got, process.PID)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
