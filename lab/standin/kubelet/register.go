package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"
)

const (
	// checkInterval is the interval between checks of a kubelet that is not ready.
	checkInterval = 500 * time.Millisecond
	// maxRegisterDelay is the maximum delay between two attempts to register.
	maxRegisterDelay = 7 * time.Second
	// firstReportDelay is the initial delay before a kubelet that is not ready reports, well within the 10 s that the
	// real kubelet may take for the first report. Until then the Node has the status of the previous kubelet.
	firstReportDelay = 3 * time.Second
)

// keepNode registers the node, and reports the status on changes and periodically.
func (k *kubelet) keepNode(ctx context.Context, watch *nodeWatch) {
	seen := k.observeMachine(ctx)
	node, err := k.registerNode(ctx, seen)
	if err != nil {
		return // ctx is done
	}
	k.infof("Successfully registered node %s", node.Name)
	if k.NotReady && !k.pauseFor(ctx, firstReportDelay) {
		return
	}
	reported := k.Clock.Now().Add(-k.config.reportInterval) // The first status is reported at once.
	for {
		seen = k.observeMachine(ctx)
		now := k.Clock.Now()
		node = watch.latestNode(node)
		status := k.nodeStatus(node.Status, seen, now)
		if hasStatusChanged(node.Status, status) || now.Sub(reported) >= k.config.reportInterval {
			updated, err := k.reportStatus(ctx, node, status)
			if err != nil {
				k.errorf("Error updating node status, will retry: %v", err)
			} else {
				node, reported = updated, now
			}
		}
		isReady := readyCondition(seen).Status == corev1.ConditionTrue
		k.network.setOpen(isReady)
		period := k.config.statusInterval
		if !isReady || hasStatusChanged(node.Status, status) {
			period = checkInterval
		}
		if !k.pauseFor(ctx, period) {
			return
		}
	}
}

// pauseFor waits; false if ctx is done.
func (k *kubelet) pauseFor(ctx context.Context, d time.Duration) bool {
	timer := k.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

func (k *kubelet) observeMachine(ctx context.Context) observation {
	var seen observation
	seen.broken = k.NotReady
	seen.runtime, seen.runtimeErr = k.Process.Host.Probes.ContainerRuntime(ctx, k.config.runtimeEndpoint)
	entries, err := k.Process.Host.Files.ReadDir(ctx, cniConfigDirectory)
	if err != nil {
		return seen
	}
	for _, entry := range entries {
		name := strings.ToLower(entry.Name)
		if !entry.Directory && (strings.HasSuffix(name, ".conf") || strings.HasSuffix(name, ".conflist") ||
			strings.HasSuffix(name, ".json")) {
			seen.network = true
		}
	}
	return seen
}

// registerNode retries until the API server accepts the node, whatever the reason of the refusal, as the kubelet
// does.
func (k *kubelet) registerNode(ctx context.Context, seen observation) (*corev1.Node, error) {
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, maxRegisterDelay) {
		node, err := k.tryRegister(ctx, k.newNode(seen))
		if err == nil {
			return node, nil
		}
		k.errorf("Unable to register node %q with API server: %v", k.config.nodeName, err)
		if !k.pauseFor(ctx, wait) {
			return nil, ctx.Err()
		}
	}
}

func (k *kubelet) tryRegister(ctx context.Context, node *corev1.Node) (*corev1.Node, error) {
	nodes := k.client.CoreV1().Nodes()
	created, err := nodes.Create(ctx, node, metav1.CreateOptions{})
	if err == nil || !apierrors.IsAlreadyExists(err) {
		return created, err
	}
	existing, err := nodes.Get(ctx, node.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	// An existing node keeps its taints; the kubelet corrects only its default labels.
	desired := existing.DeepCopy()
	if desired.Labels == nil {
		desired.Labels = map[string]string{}
	}
	maps.Copy(desired.Labels, node.Labels)
	if maps.Equal(desired.Labels, existing.Labels) {
		return existing, nil
	}
	patch, err := nodePatch(existing, desired)
	if err != nil {
		return nil, err
	}
	return nodes.Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
}

func (k *kubelet) reportStatus(ctx context.Context, node *corev1.Node, status corev1.NodeStatus) (*corev1.Node, error) {
	desired := node.DeepCopy()
	desired.Status = status
	patch, err := nodePatch(node, desired)
	if err != nil {
		return nil, err
	}
	return k.client.CoreV1().Nodes().PatchStatus(ctx, node.Name, patch)
}

func nodePatch(before, after *corev1.Node) ([]byte, error) {
	old, oldErr := json.Marshal(before)
	current, newErr := json.Marshal(after)
	if err := errors.Join(oldErr, newErr); err != nil {
		return nil, fmt.Errorf("encode the node: %w", err)
	}
	return strategicpatch.CreateTwoWayMergePatch(old, current, &corev1.Node{})
}

// keepLease renews the node's lease at a quarter of its duration. The lease is read only if it is unknown.
// Source: k8s.io/component-helpers/apimachinery/lease.
func (k *kubelet) keepLease(ctx context.Context) {
	period := time.Duration(k.config.leaseSeconds) * time.Second / 4
	var latest *coordinationv1.Lease
	for {
		wait := period
		renewed, err := k.renewLease(ctx, latest)
		if err != nil && ctx.Err() == nil {
			k.errorf("Failed to ensure lease exists, will retry: %v", err)
			wait = min(period, 7*time.Second)
		}
		latest = renewed
		if !k.pauseFor(ctx, wait) {
			return
		}
	}
}

// renewLease updates the last written lease. If the lease is unknown or another client has changed it,
// renewLease reads the lease first.
func (k *kubelet) renewLease(ctx context.Context, latest *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	leases := k.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	if latest != nil {
		if renewed, err := leases.Update(ctx, k.renewedLease(ctx, latest), metav1.UpdateOptions{}); err == nil {
			return renewed, nil
		}
	}
	lease, err := leases.Get(ctx, k.config.nodeName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: k.config.nodeName, Namespace: corev1.NamespaceNodeLease}}
		lease, err = leases.Create(ctx, k.renewedLease(ctx, lease), metav1.CreateOptions{})
	case err == nil:
		lease, err = leases.Update(ctx, k.renewedLease(ctx, lease), metav1.UpdateOptions{})
	}
	if err != nil {
		return nil, err
	}
	return lease, nil
}

// renewedLease returns the lease with the current time. If the node does not exist, the lease is created anyway and
// receives its owner with a later renewal.
func (k *kubelet) renewedLease(ctx context.Context, lease *coordinationv1.Lease) *coordinationv1.Lease {
	lease = lease.DeepCopy()
	lease.Spec.HolderIdentity = ptr.To(k.config.nodeName)
	lease.Spec.LeaseDurationSeconds = ptr.To(k.config.leaseSeconds)
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(k.Clock.Now()))
	if len(lease.OwnerReferences) == 0 {
		if node, err := k.client.CoreV1().Nodes().Get(ctx, k.config.nodeName, metav1.GetOptions{}); err == nil {
			lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
		}
	}
	return lease
}
