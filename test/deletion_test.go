package test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// kubeletStarts counts the starts of a host's kubelet.
func kubeletStarts(h *testenv.Host) int {
	return len(h.Machine().Journal().Entries(func(e fake.Entry) bool {
		return e.Kind == fake.KindService && e.Detail == "kubelet runs"
	}))
}

// The kubelet registered the deleted Node and registers no other Node before it restarts. The next instance of the
// host must restart it.
func TestDeletedNode_RecreatedIfInstanceIsDeletedToo(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(1)})
	operator := run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	h := r.Host("instance-1")
	// The operator waits five minutes for a kubelet that has just started.
	const soon = 2 * time.Minute

	deleteBoth := func(t *testing.T) (registered *corev1.Node) {
		t.Helper()
		// Creation times have a resolution of one second: the kubelet must have started in an earlier second.
		waitUntil(t, "the kubelet is older than the next instance", func(context.Context) (bool, error) {
			return slices.ContainsFunc(h.Machine().RunningProcesses(), func(p host.Process) bool {
				return strings.HasSuffix(p.Path, `\kubelet.exe`) && p.Started.Before(time.Now().Truncate(time.Second))
			}), nil
		})
		instance, err := r.Instance(t.Context(), "instance-1")
		requireNoError(t, err)
		registered = getNode(t, r, "instance-1")
		for _, object := range []client.Object{registered, instance} {
			requireNoError(t, r.Client.Delete(t.Context(), object))
		}
		return registered
	}
	// waitForNode waits until another Node is in service. If the kubelet has not restarted, no status may report it
	// as late.
	waitForNode := func(t *testing.T, deleted *corev1.Node, starts int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		misleading := ""
		requireNoError(t, r.WaitForInstance(ctx, h, "to be Ready with another Node", func(instance *v1alpha1.WindowsInstance) bool {
			if instance == nil {
				return false
			}
			if instance.Status.Summary == v1alpha1.ReasonNodeNotRegistered && kubeletStarts(h) == starts {
				misleading = instance.Status.NextAction
			}
			return testenv.IsReady(instance) && instance.Status.NodeRef.UID != string(deleted.UID)
		}))
		if misleading != "" {
			t.Errorf("before the kubelet was started again, the next action was: %s", misleading)
		}
		if n := getNode(t, r, "instance-1"); n.UID == deleted.UID || !isNodeReady(n) || n.Annotations[v1alpha1.AnnotationVersion] == "" {
			t.Errorf("the Node is %s, before %s: %+v %+v", n.UID, deleted.UID, n.Annotations, n.Status.Conditions)
		}
	}

	t.Run("while the operator runs", func(t *testing.T) {
		starts := kubeletStarts(h)
		waitForNode(t, deleteBoth(t), starts)
	})
	t.Run("while no operator runs, and the next one restarts the kubelet once and reports the reason", func(t *testing.T) {
		operator.Kill()
		<-operator.Done()
		starts := kubeletStarts(h)
		deleted := deleteBoth(t)
		operator = run(t, r)
		waitForNode(t, deleted, starts)
		if n := kubeletStarts(h) - starts; n != 1 {
			t.Errorf("the kubelet was started %d times, want 1", n)
		}
		if !waitForEvent(t, r, "NodeRegistrationTimedOut", "Node instance-1 does not exist, although the kubelet has run for") {
			t.Error("no event reports why the kubelet was restarted")
		}
	})
}
