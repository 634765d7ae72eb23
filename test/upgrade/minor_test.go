package upgrade

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/payload"
	labpayload "github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// minorsRelease returns a release with kubelets for several minor versions of Kubernetes.
func minorsRelease(t *testing.T, minors map[string]string) (testenv.Release, *payload.Payload) {
	t.Helper()
	release := testenv.Release{Version: "12.2.0", PayloadDirectory: filepath.Join(t.TempDir(), "minors")}
	p, err := labpayload.Generate(release.PayloadDirectory, "", release.Version, labpayload.Options{
		SizePercent: sizePercent, AgentBytes: agentBytes, Minors: minors})
	if err != nil {
		t.Fatal(err)
	}
	return release, p
}

// waitForKubelets waits until all Windows nodes are in service with a version of the kubelet, and no node is disrupted.
func (l lab) waitForKubelets(version string, nodes int) {
	l.Helper()
	l.runWithTimeout(fleetTimeout, func(ctx context.Context) error {
		return l.WaitFor(ctx, "kubelets of "+version, &corev1.Node{}, func(ctx context.Context, reader client.Reader) (bool, error) {
			all, err := windowsNodes(ctx, reader)
			return len(all) == nodes && !slices.ContainsFunc(all, func(n corev1.Node) bool {
				return !isInService(&n) || n.Status.NodeInfo.KubeletVersion != version
			}), err
		})
	})
	l.waitForPolicy("to disrupt no node", func(p *v1alpha1.WindowsDisruptionPolicy) bool { return len(p.Status.Disruptions) == 0 })
}

// connections returns the number of connections to all hosts so far.
func (l lab) connections() (n int) {
	for _, h := range l.Hosts() {
		n += h.Machine().Journal().Count(fake.KindConnection)
	}
	return n
}

// When the control plane of a cluster has another minor version, its Windows nodes get the kubelet of that version, one
// after the other. Nothing changes before, nor between OpenShift versions with the same Kubernetes., D-13
func TestClusterUpgrade_NodesFollowMinorVersion(t *testing.T) {
	l := start(t, withoutMachines, testenv.Options{Hosts: testenv.Hosts(3), LinuxNodes: 1})
	t.Cleanup(func() { // the control plane is shared
		if err := l.UpgradeCluster(context.WithoutCancel(t.Context()), "5.0.3", true); err != nil {
			t.Error(err)
		}
	})
	release, _ := minorsRelease(t, map[string]string{"1.35": "v1.35.4", "1.37": "v1.37.2"})
	o, err := l.RunOperator(testenv.WithRelease(release))
	l.requireNoError(err)
	l.requireNoError(l.ListHosts(t.Context()))
	l.waitForKubelets("v1.36.3", 3)
	l.changePolicy(func(p *v1alpha1.WindowsDisruptionPolicySpec) { p.MaxUnavailable = ptr.To(intstr.FromInt32(1)) })
	for _, step := range []struct {
		to, kubelet string
		changes     bool
	}{
		{"5.1.0", "v1.37.2", true},
		{"5.0.9", "v1.36.3", true},
		{"4.23.1", "v1.36.3", false},
		{"4.22.7", "v1.35.4", true},
		{"5.0.3", "v1.36.3", true},
	} {
		w, before, boots := l.watchAvailability(nil), l.connections(), map[string]int{}
		for _, h := range l.Hosts() {
			boots[h.Options.Name] = bootCount(h)
		}
		l.requireNoError(l.UpgradeCluster(t.Context(), step.to, false))
		if step.kubelet > l.nodeOf(l.Hosts()[0].NodeName()).Status.NodeInfo.KubeletVersion {
			l.waitForIdle()
			if n := l.connections() - before; n > 0 {
				t.Errorf("%d connections before the upgrade to %s was completed", n, step.to)
			}
		}
		l.requireNoError(l.UpgradeCluster(t.Context(), step.to, true))
		l.waitForKubelets(step.kubelet, 3)
		if !step.changes {
			l.waitForIdle()
			if n := l.connections() - before; n > 0 {
				t.Errorf("%d connections for the upgrade to %s, which has the same Kubernetes", n, step.to)
			}
		}
		w.checkBudget(1, 0)
		for _, h := range l.Hosts() {
			if n := bootCount(h) - boots[h.Options.Name]; n > 0 {
				t.Errorf("host %s was booted %d times by the upgrade to %s", h.Options.Name, n, step.to)
			}
		}
	}
	l.requireNoError(o.Stop())
}

// During a downgrade, API servers can have the older version, so nodes follow before the downgrade is completed.
//
func TestClusterUpgrade_DowngradeInProgressCounts(t *testing.T) {
	l := start(t, withoutMachines, testenv.Options{Hosts: testenv.Hosts(1), LinuxNodes: 1})
	t.Cleanup(func() { // the control plane is shared
		if err := l.UpgradeCluster(context.WithoutCancel(t.Context()), "5.0.3", true); err != nil {
			t.Error(err)
		}
	})
	release, _ := minorsRelease(t, map[string]string{"1.37": "v1.37.2"})
	_, err := l.RunOperator(testenv.WithRelease(release))
	l.requireNoError(err)
	l.requireNoError(l.UpgradeCluster(t.Context(), "5.1.0", true))
	l.requireNoError(l.ListHosts(t.Context()))
	l.waitForKubelets("v1.37.2", 1)
	l.requireNoError(l.UpgradeCluster(t.Context(), "5.0.9", false))
	l.waitForKubelets("v1.36.3", 1)
}

// A payload without the kubelet of a cluster's version affects only clusters of that version, and says so.
func TestClusterUpgrade_PayloadWithoutMinorReported(t *testing.T) {
	l := start(t, withoutMachines, testenv.Options{Hosts: testenv.Hosts(1), LinuxNodes: 1})
	t.Cleanup(func() { // the control plane is shared
		if err := l.UpgradeCluster(context.WithoutCancel(t.Context()), "5.0.3", true); err != nil {
			t.Error(err)
		}
	})
	release, _ := minorsRelease(t, nil)
	_, err := l.RunOperator(testenv.WithRelease(release))
	l.requireNoError(err)
	l.requireNoError(l.ListHosts(t.Context()))
	l.waitForKubelets("v1.36.3", 1)
	host := l.Hosts()[0]
	before := l.connections()
	l.requireNoError(l.UpgradeCluster(t.Context(), "5.1.0", true))
	message := l.waitForFalse(host.Options.Name, v1alpha1.ConditionUpToDate, v1alpha1.ReasonPayloadUnavailable)
	if !strings.Contains(message, "kubelet.exe") {
		t.Errorf("the message does not name the missing program: %s", message)
	}
	if n := l.connections() - before; n > 0 || !isInService(l.nodeOf(host.NodeName())) {
		t.Errorf("%d connections to the host of a node that cannot be changed", n)
	}
	l.requireNoError(l.UpgradeCluster(t.Context(), "5.0.3", true))
	l.waitForKubelets("v1.36.3", 1)
}
