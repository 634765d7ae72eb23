package plugin

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/fakepod"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// runInPod runs a command of kubectl windows against an operator in a pod, and returns the output and the exit status.
func (l lab) runInPod(pod fakepod.Pod, arguments ...string) (string, int) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), e2e.WaitTimeout)
	defer cancel()
	out, status, err := pod.Windows(ctx, l.Cluster().Kubeconfig, arguments...)
	if err != nil {
		l.Fatalf("kubectl windows %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return out, status
}

// checkOutput runs a command of kubectl windows against an operator in a pod, and checks the exit status and the
// output.
func (l lab) checkOutput(pod fakepod.Pod, status int, words []string, arguments ...string) {
	l.Helper()
	out, got := l.runInPod(pod, arguments...)
	for _, word := range words {
		if got != status || !strings.Contains(out, word) {
			l.Errorf("kubectl windows %s ended with status %d, want %d, and printed, without %q:\n%s", strings.Join(arguments, " "), got, status, word, out)
		}
	}
}

// checkNothingLeft checks that an inspection has left no files on a host.
func (l lab) checkNothingLeft(host string) {
	l.Helper()
	for _, dir := range []string{nodespec.InboxRoot, nodespec.LandingRoot} {
		entries, err := l.Host(host).Machine().Drive().ReadDir(dir)
		if err != nil {
			continue // does not exist
		}
		for _, entry := range entries { // contains files of the operator
			if strings.HasPrefix(entry.Name, "visit-") {
				l.Errorf("%s is left on host %s", entry.Path, host)
			}
		}
	}
}

func TestStoryAnAdministratorAsksBeforehand(t *testing.T) {
	l := lab{t, e2e.Boot(t, testenv.Options{Cluster: shared.Cluster(t), PayloadDir: files.Directory(t), Hosts: testenv.Hosts(2)})}
	e2e.Install(t, l.Environment)
	var pod fakepod.Pod
	if _, err := l.RunOperator(func(c *operator.Config) { pod.Config = *c }); err != nil {
		t.Fatal(err)
	}
	if err := l.ListHosts(t.Context(), "instance-1"); err != nil {
		t.Fatal(err)
	}
	l.waitForSummary("instance-1", v1alpha1.ReasonReady)
	first := l.getInstance("instance-1")

	t.Run("of a host that is as it should be, nothing would be changed", func(t *testing.T) {
		l := lab{t, l.Environment}
		for _, name := range []string{first.Name, first.Spec.Address, "--all"} {
			l.checkOutput(pod, 0, []string{first.Name + " (" + first.Spec.Address, "no change"}, "plan", name)
		}
		l.checkNothingLeft("instance-1")
	})
	t.Run("the operator reads the logs that no kubelet serves", func(t *testing.T) {
		lab{t, l.Environment}.testLogsOverSSH(pod, first.Name)
	})
	t.Run("the operator has the agent read the event log", func(t *testing.T) {
		lab{t, l.Environment}.testEventsOverSSH(pod, first.Name)
	})
	t.Run("a support case has the plan, and what the agent has said", func(t *testing.T) {
		lab{t, l.Environment}.testGatherPlan(pod, first.Name)
	})
	t.Run("a plan that is interrupted leaves nothing on the host", func(t *testing.T) {
		lab{t, l.Environment}.testInterruptedPlan(pod, first.Name)
	})
	t.Run("the plan says what a new setting changes and which pods it moves, and nothing happens", func(t *testing.T) {
		lab{t, l.Environment}.testPlan(pod, first)
	})
	t.Run("a node passes every rung", func(t *testing.T) {
		l := lab{t, l.Environment}
		out, status := l.runInPod(pod, "diagnose", first.Name)
		if status != 0 || strings.Count(out, " passed ") != 13 || !strings.Contains(out, first.Status.HostKey.Fingerprint) {
			t.Errorf("status %d:\n%s", status, out)
		}
		l.checkNothingLeft("instance-1")
	})
	t.Run("a host that is in no list is looked at, and stays as it was", func(t *testing.T) {
		l := lab{t, l.Environment}
		host := l.Host("instance-2")
		l.checkOutput(pod, 0, []string{"not listed", "none is pinned yet", "The copy installed for this check is deleted", "The operator enables it"},
			"diagnose", host.Options.Address, "--username", host.Options.Username)
		l.checkNothingLeft("instance-2")
		for _, dir := range []string{nodespec.Root, nodespec.LandingRoot} {
			if _, err := host.Machine().Drive().Stat(dir); err == nil {
				t.Errorf("%s was made", dir)
			}
		}
		restore := host.Inject(winhost.RejectKey, winhost.Parameters{})
		defer restore()
		l.checkOutput(pod, 2, []string{"does not accept the key of Secret cloud-private-key", "administrators_authorized_keys", "not reached"},
			"diagnose", host.Options.Address, "--username", host.Options.Username)
	})
	t.Run("what a host does not tell is not known", func(t *testing.T) {
		l := lab{t, l.Environment}
		restore := l.Host("instance-1").Inject(winhost.RefuseConnection, winhost.Parameters{})
		defer restore()
		l.checkOutput(pod, 1, []string{"not known", "no TCP connection to port 22"}, "plan", first.Name)
		l.checkOutput(pod, 2, []string{"no TCP connection to port 22"}, "diagnose", first.Name)
	})
	t.Run("a host key that is pinned for another instance is not suggested for acceptance", func(t *testing.T) {
		lab{t, l.Environment}.checkForeignKey(pod, first)
	})
}

// checkForeignKey makes the host of another instance respond at the address of an instance.
func (l lab) checkForeignKey(pod fakepod.Pod, first *v1alpha1.WindowsInstance) {
	l.Helper()
	if err := l.ListHosts(l.Context(), "instance-1", "instance-2"); err != nil {
		l.Fatal(err)
	}
	l.waitForSummary("instance-2", v1alpha1.ReasonReady)
	second := l.getInstance("instance-2")
	for _, move := range []struct{ host, address string }{{"instance-1", testenv.Address(77)}, {"instance-2", first.Spec.Address}} {
		if err := l.MoveHost(l.Context(), l.Host(move.host), move.address); err != nil {
			l.Fatal(err)
		}
	}
	for command, status := range map[string]int{"diagnose": 2, "plan": 1} {
		out, got := l.runInPod(pod, command, first.Name)
		if got != status || !strings.Contains(out, "of WindowsInstance "+second.Name) || strings.Contains(out, v1alpha1.AnnotationAcceptHostKey+"=") {
			l.Errorf("%s ended with status %d, want %d:\n%s", command, got, status, out)
		}
	}
}

// checkPlanHeld requests the plan while the operator does not support the cluster version.
func (l lab) checkPlanHeld(pod fakepod.Pod, first *v1alpha1.WindowsInstance) {
	l.Helper()
	const served, unserved = "5.0.3", "5.5.0"
	if err := l.UpgradeCluster(l.Context(), unserved, true); err != nil {
		l.Fatal(err)
	}
	out, status := l.runInPod(pod, "plan", first.Name)
	if status != 2 || !strings.Contains(out, "The operator does not replace it, because a new host would not become a node") || !strings.Contains(out, "OpenShift "+unserved) {
		l.Errorf("status %d:\n%s", status, out)
	}
	if err := l.UpgradeCluster(l.Context(), served, true); err != nil {
		l.Fatal(err)
	}
}

// testPlan changes a setting while the operator is paused for the host, and requests the resulting plan.
func (l lab) testPlan(pod fakepod.Pod, first *v1alpha1.WindowsInstance) {
	l.Helper()
	l.checkSuccess(first.Name+": paused", "pause", first.Name)
	l.waitForSummary("instance-1", v1alpha1.ReasonPaused)
	w := e2e.Deploy(l.T, l.Environment, 2, nil, "100%")
	if err := l.SetKubeletSettings(l.Context(), map[string]any{"maxPods": 99}); err != nil {
		l.Fatal(err)
	}
	output := ""
	if err := wait.PollUntilContextTimeout(l.Context(), 500*time.Millisecond, e2e.WaitTimeout, true,
		func(context.Context) (bool, error) {
			out, status := l.runInPod(pod, "plan", first.Name)
			output = out
			return status == 2, nil // the lab's Machine Config Operator renders the setting first
		}); err != nil {
		l.Fatalf("no change is planned: %v\n%s", err, output)
	}
	for _, words := range []string{"StopService kubelet", "(disrupts pods)", "because ", "The host is paused: the operator makes no changes",
		"The node is drained first; 2 pods are evicted:", w.Namespace + "/web-",
		"blocked. These PodDisruptionBudgets allow no disruption now: " + w.Namespace + "/web."} {
		if !strings.Contains(output, words) {
			l.Errorf("want %q in:\n%s", words, output)
		}
	}
	w.SetBudget(l.T, "0")
	if out, status := l.runInPod(pod, "plan", first.Name, "-o", "json"); status != 2 || !strings.Contains(out, `"drains": true`) ||
		strings.Contains(out, `"held"`) {
		l.Errorf("status %d:\n%s", status, out)
	}
	l.checkPlanHeld(pod, first)
	if pods := w.AwaitPods(l.T, 2); pods[0].DeletionTimestamp != nil {
		l.Error("a pod was evicted")
	}
	l.checkNothingLeft("instance-1")
	if err := l.SetKubeletSettings(l.Context(), nil); err != nil {
		l.Fatal(err)
	}
	l.checkSuccess(first.Name+": resumed", "resume", first.Name)
	l.waitForSummary("instance-1", v1alpha1.ReasonReady)
}
