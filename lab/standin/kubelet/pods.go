package kubelet

import (
	"context"
	"fmt"
	"sort"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// podRetryDelay is the delay before a failed step is retried.
const podRetryDelay = 2 * time.Second

// podTable runs a worker for each pod that is bound to the node.
type podTable struct {
	k       *kubelet
	group   sync.WaitGroup
	mu      sync.Mutex
	workers map[types.UID]*podWorker
}

// podWorker reconciles one pod.
type podWorker struct {
	mu      sync.Mutex
	pod     *corev1.Pod // last version from the watch
	deleted bool        // deleted from the API server
	news    chan struct{}
	started time.Time

	// stop runs while the containers of the pod stop; stopped is true when their time has expired. Only the
	// worker accesses both.
	stop         clock.Timer
	stopDuration time.Duration // of stop: a later deletion may request less
	stopped      bool
}

func (w *podWorker) stopWithin(timer clock.Timer, duration time.Duration) {
	w.clearStop()
	w.stop, w.stopDuration = timer, duration
}

func (w *podWorker) clearStop() {
	if w.stop != nil {
		w.stop.Stop()
	}
}

func newPodTable(k *kubelet) *podTable { return &podTable{k: k, workers: map[types.UID]*podWorker{}} }

// run watches the node's pods until ctx is done and all workers have ended.
func (t *podTable) run(ctx context.Context) {
	selector := fields.OneTermEqualSelector("spec.nodeName", t.k.config.nodeName).String()
	factory := informers.NewSharedInformerFactoryWithOptions(t.k.client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = selector }))
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { t.handleEvent(ctx, object, false) },
		UpdateFunc: func(_, object any) { t.handleEvent(ctx, object, false) },
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			t.handleEvent(ctx, object, true)
		},
	})
	if err != nil {
		t.k.errorf("Failed to watch pods: %v", err)
		return
	}
	informer.RunWithContext(ctx)
	t.group.Wait()
}

func (t *podTable) updatePod(ctx context.Context, pod *corev1.Pod, deleted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.workers[pod.UID]
	if w == nil {
		if deleted {
			return
		}
		w = &podWorker{pod: pod, news: make(chan struct{}, 1), started: t.k.Clock.Now()} // The worker starts immediately.
		t.workers[pod.UID] = w
		t.group.Go(func() {
			t.runWorker(ctx, w)
			t.mu.Lock()
			defer t.mu.Unlock()
			delete(t.workers, pod.UID)
		})
	}
	w.mu.Lock()
	w.pod, w.deleted = pod, w.deleted || deleted
	w.mu.Unlock()
	select {
	case w.news <- struct{}{}:
	default:
	}
}

func (w *podWorker) latestPod() (pod *corev1.Pod, deleted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pod, w.deleted
}

// list returns the table sorted by name.
func (t *podTable) list() []corev1.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	pods := make([]corev1.Pod, 0, len(t.workers))
	for _, w := range t.workers {
		if pod, deleted := w.latestPod(); !deleted && pod != nil {
			pods = append(pods, *pod)
		}
	}
	sort.Slice(pods, func(i, j int) bool {
		return pods[i].Namespace+"/"+pods[i].Name < pods[j].Namespace+"/"+pods[j].Name
	})
	return pods
}

// runWorker runs the pod from Pending to the end.
func (t *podTable) runWorker(ctx context.Context, w *podWorker) {
	defer w.clearStop()
	for {
		pod, deleted := w.latestPod()
		wait, err := t.syncPod(ctx, w, pod, deleted)
		if err != nil && ctx.Err() == nil {
			t.k.errorf("Error syncing pod %s/%s, skipping: %v", pod.Namespace, pod.Name, err)
			wait = podRetryDelay
		}
		if wait == done {
			return
		}
		if !t.awaitWork(ctx, w, wait) {
			return
		}
	}
}

const (
	done        time.Duration = -1 // the pod has ended
	untilNews   time.Duration = 0  // no work until the pod changes
	untilOpened time.Duration = -2 // no work until pods can run
	untilEnded  time.Duration = -3 // no work until the stop time of the containers has expired
)

// awaitWork waits for the duration or for a change of the pod; false if ctx is done.
func (t *podTable) awaitWork(ctx context.Context, w *podWorker, wait time.Duration) bool {
	var timeout <-chan time.Time
	var opened <-chan struct{}
	var ended <-chan time.Time
	switch {
	case wait == untilEnded:
		ended = w.stop.C()
	case wait == untilOpened:
		opened = t.k.network.openedChannel()
	case wait > 0:
		timer := t.k.Clock.NewTimer(wait)
		defer timer.Stop()
		timeout = timer.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-w.news:
	case <-opened:
	case <-timeout:
	case <-ended:
		w.stopped = true
	}
	return true
}

// syncPod performs the next step for the pod and returns the time to wait afterwards.
func (t *podTable) syncPod(ctx context.Context, w *podWorker, pod *corev1.Pod, deleted bool) (time.Duration, error) {
	switch {
	case deleted:
		return done, t.k.Runtime.StopPod(ctx, runtimePod(pod))
	case pod.DeletionTimestamp != nil:
		return t.endPod(ctx, w, pod)
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return untilNews, t.k.Runtime.StopPod(ctx, runtimePod(pod))
	}
	if reason, message := t.k.refusalReason(pod); reason != "" {
		return untilNews, t.patchStatus(ctx, pod, refusedStatus(pod, reason, message))
	}
	select {
	case <-t.k.network.openedChannel():
	default:
		if pod.Status.Phase == corev1.PodRunning {
			return untilOpened, nil // The pod keeps running while the runtime is down.
		}
		return untilOpened, t.patchStatus(ctx, pod, waitingStatus(pod, t.k.config.nodeIP, "ContainerCreating",
			"", t.k.Clock.Now()))
	}
	address, fresh, err := t.k.Runtime.RunPod(ctx, runtimePod(pod))
	if err != nil {
		status := waitingStatus(pod, t.k.config.nodeIP, "CreatePodSandboxError", err.Error(), t.k.Clock.Now())
		_ = t.patchStatus(ctx, pod, status) // The error of the runtime takes precedence.
		return 0, fmt.Errorf("failed to create pod sandbox: %w", err)
	}
	if pod.Spec.HostNetwork {
		address = t.k.config.nodeIP
	}
	return untilNews, t.patchStatus(ctx, pod, runningStatus(pod, t.k.config.nodeIP, address, fresh, t.k.Clock.Now()))
}

// handleEvent forwards an informer event for a pod.
func (t *podTable) handleEvent(ctx context.Context, object any, deleted bool) {
	if pod, ok := object.(*corev1.Pod); ok {
		t.updatePod(ctx, pod, deleted)
	}
}

// endPod waits for the stop time of the containers, at most the grace period, and then deletes the pod. The time
// starts when the kubelet learns of the deletion, independent of the host's clock.
func (t *podTable) endPod(ctx context.Context, w *podWorker, pod *corev1.Pod) (time.Duration, error) {
	if stop := t.stopTime(pod); stop > 0 && pod.Status.Phase == corev1.PodRunning && !w.stopped {
		if w.stop == nil || stop < w.stopDuration {
			w.stopWithin(t.k.Clock.NewTimer(stop), stop)
		}
		return untilEnded, nil
	}
	if err := t.k.Runtime.StopPod(ctx, runtimePod(pod)); err != nil {
		return 0, err
	}
	if err := t.patchStatus(ctx, pod, endedStatus(pod, t.k.Clock.Now())); err != nil {
		return 0, err
	}
	err := t.k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return done, nil
	}
	// A finalizer may keep the object: the worker ends when the API server reports the deletion.
	return untilNews, err
}

// stopTime returns the time that the containers of the pod take to stop.
func (t *podTable) stopTime(pod *corev1.Pod) time.Duration {
	grace := time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second
	stop := t.k.PodStopTime
	if seconds, err := strconv.Atoi(pod.Annotations[StopSecondsAnnotation]); err == nil {
		stop = time.Duration(seconds) * time.Second
	}
	return min(stop, grace)
}

func runtimePod(pod *corev1.Pod) Pod {
	return Pod{UID: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name, HostNetwork: pod.Spec.HostNetwork}
}
