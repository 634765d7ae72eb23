package plugin

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/podexec"
	"github.com/windows-machine-config/wmco/lab/fakepod"
	"github.com/windows-machine-config/wmco/lab/secretscan"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

// testEventsOverSSH requests the events of a node, once and with --follow.
func (l lab) testEventsOverSSH(pod fakepod.Pod, name string) {
	l.Helper()
	log := l.Host("instance-1").Machine().Host().EventLog
	report := func(source, message string) {
		l.Helper()
		l.requireNoError(log.Report(l.Context(), host.Event{Source: source, Level: host.EventError, ID: 3, Message: message}))
	}
	report(nodespec.ServiceAgent, "containerd does not start\r\nat all")
	report("Database", "of no concern")
	report("kubelet", "it has no certificate")
	out, status := l.runInPod(pod, "logs", name, "--events")
	if status != 0 || !strings.Contains(out, " Error Application/windows-instance-config-daemon 3: containerd does not start at all\n") ||
		!strings.Contains(out, " Error Application/kubelet 3: it has no certificate\n") || strings.Contains(out, "of no concern") {
		l.Errorf("status %d:\n%s", status, out)
	}
	if out, _ := l.runInPod(pod, "logs", name, "containerd", "--events", "--since=1h"); !strings.Contains(out, "containerd does not start") || strings.Contains(out, "certificate") {
		l.Errorf("of containerd it shows:\n%s", out)
	}
	if out, _ := l.runInPod(pod, "logs", name, "--events", "--tail=1"); strings.Count(out, "\n") != 1 || !strings.Contains(out, "certificate") {
		l.Errorf("the last one is:\n%s", out)
	}
	l.checkOutput(pod, 1, []string{"a node has no service database"}, "logs", name, "database", "--events")

	shown := &output{}
	ctx, interrupt := context.WithCancelCause(l.Context())
	defer interrupt(nil)
	ended := make(chan error, 1)
	go func() {
		_, err := pod.Run(ctx, []string{"logs", name, "--events", "--follow"}, podexec.Streams{Out: shown, ErrOut: shown})
		ended <- err
	}()
	shows := func(words string) {
		l.Helper()
		if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, e2e.WaitTimeout, true, func(context.Context) (bool, error) {
			return strings.Contains(shown.String(), words), nil
		}); err != nil {
			l.Fatalf("it has printed %q, %v", shown, err)
		}
	}
	shows("it has no certificate")
	report("kubelet", "it has one now")
	shows("it has one now")
	interrupt(errGone)
	<-ended
	if strings.Count(shown.String(), "it has no certificate") != 1 {
		l.Errorf("it shows events twice:\n%s", shown)
	}
	l.checkNothingLeft("instance-1")
}

// testGatherPlan gathers the data of a node with an empty plan.
func (l lab) testGatherPlan(pod fakepod.Pod, name string) {
	l.Helper()
	secrets := secretscan.Secrets{}
	secrets.AddKey("the operator's SSH key", l.PrivateKey())
	dir := l.TempDir()
	out, status := l.runInPod(pod, "gather", name, "--dest-dir", dir)
	if status != 0 {
		l.Errorf("status %d:\n%s", status, out)
	}
	planned, _ := l.runInPod(pod, "plan", name)
	path := filepath.Join(dir, "hosts", name, "plan.txt")
	if content, err := os.ReadFile(path); err != nil || string(content) != planned || !strings.Contains(planned, "no change") {
		l.Errorf("the plan in the archive is %q, %v; that of kubectl windows plan is %q", content, err, planned)
	}
	l.checkFileContains(filepath.Join(dir, "hosts", name, "last-commands.txt"), "apply\n", "CreateEndpoint VIPEndpoint: done", "verify\n", "completed\n")
	l.checkFileContains(filepath.Join(dir, "index.html"), "plan.txt", "last-commands.txt")
	l.checkNoSecrets(secrets, dir)
	l.checkNothingLeft("instance-1")
}
