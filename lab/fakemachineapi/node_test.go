package fakemachineapi

import (
	"context"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// joinNode creates the Node of a Machine, as the kubelet and the cloud controller would.
func (f *fixture) joinNode(m *machinev1.Machine, ready corev1.ConditionStatus) *corev1.Node {
	f.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.namespace + "-" + m.Name}}
	node.Spec.ProviderID = ptr.Deref(m.Spec.ProviderID, "")
	node.Status.Addresses = m.Status.Addresses
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"),
		corev1.ResourcePods: resource.MustParse("100")}
	node.Status.Capacity = node.Status.Allocatable
	now := metav1.Now()
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastTransitionTime: now,
		LastHeartbeatTime: now}}
	f.requireNoError(f.Create(f.t.Context(), node))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	name := node.Name // The test continues to use node and reads it again.
	go func() { f.keepLease(ctx, name); close(ended) }()
	f.t.Cleanup(func() {
		cancel()
		<-ended
		f.requireNoError(client.IgnoreNotFound(f.Delete(context.Background(), node.DeepCopy())))
	})
	return node
}

// keepLease renews the Node's lease. Without renewals, the Node becomes unreachable after a while.
func (f *fixture) keepLease(ctx context.Context, name string) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceNodeLease}}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &name, ptr.To[int32](40)
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	for write := f.createLease; ; write = f.updateLease {
		lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
		if err := write(ctx, lease); err != nil && ctx.Err() == nil {
			f.t.Logf("renew the lease of %s: %v", name, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (f *fixture) createLease(ctx context.Context, lease *coordinationv1.Lease) error {
	return f.Create(ctx, lease)
}

func (f *fixture) updateLease(ctx context.Context, lease *coordinationv1.Lease) error {
	return client.IgnoreNotFound(f.Update(ctx, lease))
}

// reportReady sets the Ready condition of a Node.
func (f *fixture) reportReady(node *corev1.Node, ready corev1.ConditionStatus) {
	f.t.Helper()
	f.pollUntil("report that "+node.Name+" is "+string(ready), func(ctx context.Context) (bool, error) {
		if err := f.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
			return false, err
		}
		now := metav1.Now()
		if f.clock != nil {
			now = metav1.NewTime(f.clock.Now())
		}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastTransitionTime: now,
			LastHeartbeatTime: now}}
		err := f.Status().Update(ctx, node)
		return err == nil, ignoreConflict(err)
	})
}
