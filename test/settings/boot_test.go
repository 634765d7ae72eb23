package settings

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

const (
	cniConfig      = `C:\k\cni\config\cni.conf`
	overlayNetwork = "OVNKubernetesHybridOverlayNetwork"
)

// hasNetwork reports whether the pod network exists.
func hasNetwork(h *testenv.Host) bool {
	return slices.ContainsFunc(h.Machine().Snapshot().Networks, func(n host.HNSNetwork) bool {
		return n.Name == overlayNetwork
	})
}

// rebootHost restarts a host as after a power failure, and waits until the Node reports the restart.
func (l lab) rebootHost(h *testenv.Host) {
	l.Helper()
	boot := h.Machine().BootID()
	h.Machine().PowerOff()
	l.requireNoError(h.Machine().Boot(l.Context()))
	l.awaitCondition("node "+h.NodeName()+" to be Ready after the boot", &corev1.Node{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			node := &corev1.Node{}
			err := reader.Get(ctx, client.ObjectKey{Name: h.NodeName()}, node)
			ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			})
			return ready && node.Status.NodeInfo.BootID == h.Machine().BootID() && h.Machine().BootID() != boot,
				client.IgnoreNotFound(err)
		})
}

//
func TestBoot_NoPodStartsBeforeNetwork(t *testing.T) {
	l := sharedLab(t)
	l.waitForPods()
	h := l.Host("instance-3")
	before, mark := takeSnapshot(h), len(h.Machine().Journal().Entries(nil))
	var early atomic.Bool
	remove := h.Machine().OnOperation(func(o fake.Operation) error {
		if o.Interface == "Services" && o.Method == "Start" && o.Target == "kubelet" &&
			readHostFile(h, cniConfig) != "" && !hasNetwork(h) {
			early.Store(true)
		}
		return nil
	})
	defer remove()
	l.rebootHost(h) // The network does not survive a restart.
	if early.Load() {
		t.Error("the kubelet was started while the plugin was configured and the network was not there")
	}
	if !l.hasEntriesInOrder(h, mark, "power boot", "file remove "+cniConfig, "service kubelet runs",
		"network create network "+overlayNetwork, "write "+cniConfig) {
		t.Log(strings.Join(journalLines(h, mark), "\n"))
	}
	l.waitForPods()
	if got := diffSnapshots(before, takeSnapshot(h)); len(got) > 0 {
		t.Errorf("the host is not as it was: %s", got)
	}
	l.waitForIdle()
}

// hasEntriesInOrder checks that the journal has entries with the expected prefixes in this order.
func (l lab) hasEntriesInOrder(h *testenv.Host, mark int, desired ...string) bool {
	l.Helper()
	entries := journalLines(h, mark)
	for _, want := range desired {
		i := slices.IndexFunc(entries, func(entry string) bool { return strings.HasPrefix(entry, want) })
		if i < 0 {
			l.Errorf("host %s: no %q in its place", h.Options.Name, want)
			return false
		}
		entries = entries[i+1:]
	}
	return true
}

// journalLines returns the entries of a host's journal since the mark, one per line.
func journalLines(h *testenv.Host, mark int) (lines []string) {
	for _, e := range h.Machine().Journal().Entries(nil)[mark:] {
		lines = append(lines, string(e.Kind)+" "+e.Detail)
	}
	return lines
}
