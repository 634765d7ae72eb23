package fakeopenshift

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// linuxNodes are Node objects without Linux machines, with leases that keep the nodes ready.
type linuxNodes struct {
	client kubernetes.Interface
	clock  clock.WithTicker
	nodes  []*corev1.Node
}

func newLinuxNodes(client kubernetes.Interface, o Options) *linuxNodes {
	l := &linuxNodes{client: client, clock: o.Clock}
	add := func(name string, roles ...string) {
		l.nodes = append(l.nodes, linuxNode(name, o.LinuxAddress(len(l.nodes)), o.Clock.Now(), roles))
	}
	for i := range o.ControlPlaneNodes {
		add(fmt.Sprintf("master-%d", i), "control-plane", "master")
	}
	for i := range o.WorkerNodes {
		add(fmt.Sprintf("worker-%d", i), "worker")
	}
	return l
}

func linuxNode(name, address string, now time.Time, roles []string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		"node.openshift.io/os_id": "rhel",
	}}}
	// No kubelet runs there, so no pod must be scheduled there.
	node.Spec.Taints = []corev1.Taint{{Key: "lab.windows-machine-config/simulated", Effect: corev1.TaintEffectNoSchedule}}
	for _, role := range roles {
		node.Labels["node-role.kubernetes.io/"+role] = ""
		if role == "master" {
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "node-role.kubernetes.io/master",
				Effect: corev1.TaintEffectNoSchedule})
		}
	}
	node.Status = corev1.NodeStatus{
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address},
			{Type: corev1.NodeHostName, Address: name}},
		Capacity: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"),
			corev1.ResourcePods: resource.MustParse("250"),
		},
		NodeInfo: corev1.NodeSystemInfo{
			OperatingSystem: "linux", Architecture: "amd64", KubeletVersion: "v1.36.3",
			ContainerRuntimeVersion: "cri-o://1.36.0",
			OSImage:                 "Red Hat Enterprise Linux CoreOS (simulated)", KernelVersion: "5.14.0",
		},
		Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
			Message:           "kubelet is posting ready status",
			LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
		}},
	}
	node.Status.Allocatable = node.Status.Capacity
	return node
}

// createNodes creates the nodes, or keeps nodes from an earlier run.
func (l *linuxNodes) createNodes(ctx context.Context) error {
	for _, node := range l.nodes {
		if _, err := l.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil &&
			!apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make the Linux node %s: %w", node.Name, err)
		}
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			created, err := l.client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			created.Status = node.Status
			_, err = l.client.CoreV1().Nodes().UpdateStatus(ctx, created, metav1.UpdateOptions{})
			return err
		})
		if err != nil {
			return fmt.Errorf("make the Linux node %s ready: %w", node.Name, err)
		}
	}
	return nil
}

// keepLeases renews the leases until ctx is done.
func (l *linuxNodes) keepLeases(ctx context.Context, log *slog.Logger) {
	ticker := l.clock.NewTicker(leaseRenewInterval)
	defer ticker.Stop()
	for {
		for _, node := range l.nodes {
			if err := l.renewLease(ctx, node.Name); err != nil && ctx.Err() == nil {
				log.Info("renew the lease of a Linux node", "node", node.Name, "error", err.Error())
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

func (l *linuxNodes) renewLease(ctx context.Context, name string) error {
	leases := l.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := leases.Get(ctx, name, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return err
	}
	if missing {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceNodeLease}}
	}
	lease.Spec.HolderIdentity = ptr.To(name)
	lease.Spec.LeaseDurationSeconds = ptr.To[int32](40)
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(l.clock.Now()))
	if missing {
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	return err
}
