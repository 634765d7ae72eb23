package kubelet

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// serveContainerLogs serves the requests of `oc logs`: a few lines with the container and the host. R-070
func (s *server) serveContainerLogs(w http.ResponseWriter, r *http.Request) {
	pod := s.findPod(r.PathValue("namespace"), r.PathValue("pod"))
	if pod == nil {
		http.Error(w, fmt.Sprintf("pod %q does not exist", r.PathValue("pod")), http.StatusNotFound)
		return
	}
	container := r.PathValue("container")
	i := slices.IndexFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == container })
	if i < 0 {
		http.Error(w, fmt.Sprintf("container %q not found in pod %q", container, pod.Name), http.StatusNotFound)
		return
	}
	running := pod.Status.ContainerStatuses[i].State.Running
	if running == nil {
		http.Error(w, fmt.Sprintf("container %q in pod %q is waiting to start", container, pod.Name), http.StatusBadRequest)
		return
	}
	query := r.URL.Query()
	w.Header().Set("Content-Type", "text/plain")
	for _, line := range lastLines(s.k.containerLines(pod, container), query.Get("tailLines")) {
		if query.Get("timestamps") == "true" {
			line = running.StartedAt.UTC().Format(time.RFC3339Nano) + " " + line
		}
		fmt.Fprintln(w, line)
	}
	if query.Get("follow") == "true" {
		s.holdResponse(w, r, pod)
	}
}

func (k *kubelet) containerLines(pod *corev1.Pod, container string) []string {
	return []string{
		fmt.Sprintf("container %s of pod %s/%s", container, pod.Namespace, pod.Name),
		fmt.Sprintf("runs in name on %s, %s build %s.%d", k.config.nodeName, k.system.Product,
			k.system.Version, k.system.Revision),
		fmt.Sprintf("with address %s", pod.Status.PodIP),
	}
}

func lastLines(lines []string, count string) []string {
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n >= len(lines) {
		return lines
	}
	return lines[len(lines)-n:]
}

// holdResponse keeps the response open until the pod is deleted or the client disconnects.
func (s *server) holdResponse(w http.ResponseWriter, r *http.Request, pod *corev1.Pod) {
	if err := http.NewResponseController(w).Flush(); err != nil {
		return
	}
	for s.k.pauseFor(r.Context(), time.Second) {
		if now := s.findPod(pod.Namespace, pod.Name); now == nil || now.UID != pod.UID {
			return
		}
	}
}

func (s *server) findPod(namespace, name string) *corev1.Pod {
	for _, pod := range s.pods.list() {
		if pod.Namespace == namespace && pod.Name == name {
			return &pod
		}
	}
	return nil
}
