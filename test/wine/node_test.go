package wine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/fakepod"
)

//
func TestNode_HostJoinsIsRepairedAndRestored(t *testing.T) {
	l := newLab(t, "WIN-ONE")
	h := l.hosts[0]
	before := snapshotOf(t, h)
	var pod fakepod.Pod
	first, err := l.RunOperator(func(c *operator.Config) { pod.Config = *c })
	requireNoError(t, err)
	l.list(h)
	l.awaitReady(h)

	//
	t.Run("its node carries the names that administrators know", func(t *testing.T) {
		n := l.nodeOf(h)
		for label, want := range map[string]string{
			"node.openshift.io/os_id": "Windows", "node-role.kubernetes.io/worker": "", "windowsmachineconfig.openshift.io/byoh": "true", corev1.LabelOSStable: "windows",
		} {
			if got, ok := n.Labels[label]; !ok || got != want {
				t.Errorf("label %s is %q (there: %t), want %q", label, got, ok, want)
			}
		}
		if got := n.Annotations[v1alpha1.AnnotationVersion]; got != "1.0.0-lab" {
			t.Errorf("the version annotation is %q", got)
		}
	})
	//
	t.Run("it was restarted once, for the Containers feature", func(t *testing.T) {
		if got := h.Boots(); got != 2 {
			t.Errorf("%d boots, want 2", got)
		}
	})
	t.Run("no PowerShell and no other program of Windows was needed", func(t *testing.T) {
		refused, err := h.Refused()
		requireNoError(t, err)
		if len(refused) > 0 {
			t.Errorf("%q", refused)
		}
	})
	t.Run("it reports whether it reaches the API server", func(t *testing.T) { checkAPIServerFacts(t, h) })
	t.Run("kubectl windows shows what it is and what would be changed", func(t *testing.T) { l.checkPluginCommands(t, pod, h) })
	t.Run("configuring it again changes nothing", func(t *testing.T) { checkEmptyPlan(t, h) })
	t.Run("an operator that starts again leaves it alone", func(t *testing.T) { l.checkOperatorRestart(t, first, h) })
	t.Run("drift is put back within seconds", func(t *testing.T) { checkDriftRepair(t, h) })

	l.list()
	l.awaitGone(h)
	//
	t.Run("it is as it was before, with its firewall, networks, features, certificates and programs", func(t *testing.T) {
		if diff := cmp.Diff(before, snapshotOf(t, h)); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
	})
}

// the operator is killed at three moments of the first configuration, and the next operator
// continues. The host is listed by its DNS name.
func TestNode_KilledOperatorIsReplaced(t *testing.T) {
	l := newLab(t, "WIN-TWO")
	l.byName = true
	h := l.hosts[0]
	l.list(h)
	for _, step := range []string{"SendPayload", "InstallRelease", "StartService"} {
		operator := l.run()
		l.waitForInstance(h, "to be at "+step, func(instance *v1alpha1.WindowsInstance) bool {
			return instance != nil && (instance.Status.Step != nil && strings.HasPrefix(instance.Status.Step.Name, step) ||
				instance.Status.Version != "")
		})
		operator.Kill()
	}
	l.run()
	l.awaitReady(h)
}

// the current agent runs, so the file cannot be overwritten. The new agent is stored next to it.
func TestNode_RunningAgentIsUpgraded(t *testing.T) {
	l := newLab(t, "WIN-THREE")
	h := l.hosts[0]
	first := l.run()
	l.list(h)
	l.awaitReady(h)
	before := commandLine(t, h, nodespec.ServiceAgent)
	requireNoError(t, first.Stop())

	l.runOperatorVersion("2.0.0-lab")
	l.waitForInstance(h, "to be of the new version", func(instance *v1alpha1.WindowsInstance) bool {
		return instance != nil && instance.Status.Version == "2.0.0-lab"
	})
	l.awaitReady(h)
	after := commandLine(t, h, nodespec.ServiceAgent)
	if before == after {
		t.Errorf("the service still runs %s", after)
	}
	deadline := time.Now().Add(waitTimeout)
	for countAgents(t, h) != 1 && time.Now().Before(deadline) {
		time.Sleep(time.Second) // the next apply or check of the service deletes the previous agent's directory
	}
	if n := countAgents(t, h); n != 1 {
		t.Errorf("%d agents lie on the host, want the new one", n)
	}
}

//
func TestNode_PowerLossDuringConfigurationRecovers(t *testing.T) {
	l := newLab(t, "WIN-FOUR")
	h := l.hosts[0]
	l.run()
	l.list(h)
	waitUntil(t, "the host has a folder of releases", func() bool { return hasFile(t, h, nodespec.ReleasesRoot) })
	requireNoError(t, h.Stop(t.Context()))
	requireNoError(t, h.Start(t.Context()))
	l.awaitReady(h)
}
