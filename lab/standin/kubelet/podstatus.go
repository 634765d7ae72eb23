package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"
)

// refusalReason returns the reason why the kubelet refuses a pod that is bound to its node; empty if the kubelet
// accepts the pod.
func (k *kubelet) refusalReason(pod *corev1.Pod) (reason, message string) {
	if pod.Spec.OS != nil && pod.Spec.OS.Name != corev1.Windows {
		return "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
	}
	labels := k.nodeLabels()
	for _, key := range []string{corev1.LabelOSStable, corev1.LabelWindowsBuild} {
		if value, ok := pod.Spec.NodeSelector[key]; ok && value != labels[key] {
			return "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
		}
	}
	return "", ""
}

func refusedStatus(pod *corev1.Pod, reason, message string) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	status.Phase, status.Reason, status.Message = corev1.PodFailed, reason, "Pod was rejected: "+message
	return status
}

func waitingStatus(pod *corev1.Pod, hostIP, reason, message string, now time.Time) corev1.PodStatus {
	status := baseStatus(pod, hostIP, now)
	status.Phase = corev1.PodPending
	status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Started: ptr.To(false), RestartCount: restartCount(pod, c.Name),
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		})
	}
	setPodConditions(&status, false, "ContainersNotReady", now)
	return status
}

func runningStatus(pod *corev1.Pod, hostIP, address string, fresh bool, now time.Time) corev1.PodStatus {
	status := baseStatus(pod, hostIP, now)
	status.Phase = corev1.PodRunning
	status.PodIP, status.PodIPs = address, nil
	if address != "" {
		status.PodIPs = []corev1.PodIP{{IP: address}}
	}
	status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		count, started := restartCount(pod, c.Name), metav1.NewTime(now)
		for _, old := range pod.Status.ContainerStatuses {
			if old.Name != c.Name || old.State.Running == nil {
				continue
			}
			if fresh { // The pod ran before and was stopped by a restart of the host.
				count++
			} else {
				started = old.State.Running.StartedAt
			}
		}
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: "containerd://" + string(pod.UID) + "-" + c.Name,
			Ready: true, Started: ptr.To(true), RestartCount: count,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
		})
	}
	setPodConditions(&status, true, "", now)
	return status
}

func endedStatus(pod *corev1.Pod, now time.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	status.Phase = corev1.PodSucceeded
	for i := range status.ContainerStatuses {
		c := &status.ContainerStatuses[i]
		ended := &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: metav1.NewTime(now),
			ContainerID: c.ContainerID}
		if c.State.Running != nil {
			ended.StartedAt = c.State.Running.StartedAt
		}
		if c.State.Terminated == nil {
			c.State = corev1.ContainerState{Terminated: ended}
		}
		c.Ready, c.Started = false, ptr.To(false)
	}
	setPodConditions(&status, false, "PodCompleted", now)
	return status
}

func baseStatus(pod *corev1.Pod, hostIP string, now time.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	status.HostIP, status.HostIPs = hostIP, nil
	if hostIP != "" {
		status.HostIPs = []corev1.HostIP{{IP: hostIP}}
	}
	if status.StartTime == nil {
		status.StartTime = ptr.To(metav1.NewTime(now))
	}
	return status
}

func restartCount(pod *corev1.Pod, container string) int32 {
	for _, old := range pod.Status.ContainerStatuses {
		if old.Name == container {
			return old.RestartCount
		}
	}
	return 0
}

func setPodConditions(status *corev1.PodStatus, isReady bool, reason string, now time.Time) {
	value := corev1.ConditionFalse
	if isReady {
		value = corev1.ConditionTrue
	}
	setPodCondition(status, corev1.PodInitialized, corev1.ConditionTrue, "", now)
	setPodCondition(status, corev1.PodReadyToStartContainers, value, "", now)
	setPodCondition(status, corev1.ContainersReady, value, reason, now)
	setPodCondition(status, corev1.PodReady, value, reason, now)
}

func setPodCondition(status *corev1.PodStatus, kind corev1.PodConditionType, value corev1.ConditionStatus,
	reason string, now time.Time) {
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if c.Type != kind {
			continue
		}
		if c.Status != value {
			c.LastTransitionTime = metav1.NewTime(now)
		}
		c.Status, c.Reason = value, reason
		return
	}
	status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: value, Reason: reason,
		LastTransitionTime: metav1.NewTime(now)})
}

// patchStatus writes the status if it differs from the status on the API server.
func (t *podTable) patchStatus(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	if equality.Semantic.DeepEqual(pod.Status, status) {
		return nil
	}
	after := corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: pod.UID}, Status: status}
	old, oldErr := json.Marshal(corev1.Pod{Status: pod.Status})
	current, newErr := json.Marshal(after) // with the UID, as a precondition
	if err := errors.Join(oldErr, newErr); err != nil {
		return fmt.Errorf("encode the status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(old, current, &corev1.Pod{})
	if err != nil {
		return fmt.Errorf("compute the status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	_, err = t.k.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) {
		return nil // The watch reports the deletion.
	}
	return err
}
