package examples_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
)

// The nodes of these tests, in the state left by the operator and the kubelet, and a Linux node.
const (
	node2019  = "windows-2019"
	node2022  = "windows-2022"
	nodeLinux = "linux"
)

// createNodes creates the nodes and keeps them Ready until the end of the test.
func createNodes(t *testing.T, c client.Client) {
	t.Helper()
	windows := []corev1.Taint{{Key: "os", Value: "Windows", Effect: corev1.TaintEffectNoSchedule}}
	var nodes []*corev1.Node
	for _, n := range []struct {
		name, system, build string
		taints              []corev1.Taint
	}{
		{nodeLinux, "linux", "", nil},
		{node2019, "windows", "10.0.17763", windows},
		{node2022, "windows", "10.0.20348", windows},
	} {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{
				corev1.LabelOSStable: n.system, "beta.kubernetes.io/os": n.system, corev1.LabelArchStable: "amd64",
				corev1.LabelHostname: n.name,
			}},
			Spec: corev1.NodeSpec{Taints: n.taints},
		}
		if n.build != "" {
			node.Labels[corev1.LabelWindowsBuild] = n.build
		}
		createObject(t, c, node)
		nodes = append(nodes, node)
	}
	stopped := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(func() { stop(); <-stopped })
	go func() {
		defer close(stopped)
		heartbeat := time.NewTicker(5 * time.Second)
		defer heartbeat.Stop()
		for ctx.Err() == nil {
			for _, node := range nodes {
				if err := reportNodeReady(ctx, c, node); err != nil && ctx.Err() == nil {
					t.Errorf("node %s: %v", node.Name, err)
				}
			}
			select {
			case <-ctx.Done():
			case <-heartbeat.C:
			}
		}
	}()
}

// reportNodeReady reports the status of a node as the kubelet does.
func reportNodeReady(ctx context.Context, c client.Client, node *corev1.Node) error {
	before := node.DeepCopy()
	resources := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	node.Status.Capacity, node.Status.Allocatable = resources, resources
	now := metav1.Now()
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now,
		LastTransitionTime: node.CreationTimestamp,
	}}
	return c.Status().Patch(ctx, node, client.MergeFrom(before))
}

// apply creates the object of an example in a namespace.
func apply(t *testing.T, c client.Client, namespace, name string) {
	t.Helper()
	object := read(t, name)
	object.SetNamespace(namespace)
	createObject(t, c, object)
}

// podOf waits until the pod of the web server is scheduled.
func podOf(t *testing.T, c client.Client, namespace string) corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	waitUntil(t, "the web server's pod gets a node", func(ctx context.Context) (bool, error) {
		err := c.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{"app": "win-webserver"})
		return err == nil && len(pods.Items) == 1 && pods.Items[0].Spec.NodeName != "", err
	})
	return pods.Items[0]
}

// createPod creates a pod once the namespace has a service account, and returns the response of the API server.
func createPod(t *testing.T, c client.Client, namespace, name string, spec corev1.PodSpec) (*corev1.Pod, error) {
	t.Helper()
	spec.Containers = []corev1.Container{{Name: "main", Image: "example.com/none"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
	waitUntil(t, "the namespace is set up", func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
	return pod, c.Create(t.Context(), pod)
}

func TestWorkloads(t *testing.T) {
	c := newStrictClient(t)
	createNodes(t, c)
	createObject(t, c, read(t, "runtime-class.yaml"))
	createObject(t, c, read(t, "runtime-class-2022.yaml"))

	//
	t.Run("a RuntimeClass places the web server, by what admission merges into its pod", func(t *testing.T) {
		namespace := clustertest.Namespace(t, lab.Cluster(t))
		apply(t, c, namespace, "win-webserver.yaml")
		pod := podOf(t, c, namespace)
		if pod.Spec.NodeName != node2019 || pod.Spec.NodeSelector[corev1.LabelWindowsBuild] != "10.0.17763" || pod.Spec.NodeSelector[corev1.LabelOSStable] != "windows" {
			t.Errorf("it is on node %s by %v", pod.Spec.NodeName, pod.Spec.NodeSelector)
		}
		for _, value := range []string{"windows", "Windows"} {
			if !slices.Contains(pod.Spec.Tolerations, corev1.Toleration{Key: "os", Operator: corev1.TolerationOpEqual, Value: value, Effect: corev1.TaintEffectNoSchedule}) {
				t.Errorf("it does not tolerate %s: %v", value, pod.Spec.Tolerations)
			}
		}
		checkEndpoints(t, c, namespace, pod)
	})
	//
	t.Run("that of Windows Server 2022 places a pod there", func(t *testing.T) {
		class := "windows2022"
		pod, err := createPod(t, c, clustertest.Namespace(t, lab.Cluster(t)), "pod", corev1.PodSpec{RuntimeClassName: &class})
		if err != nil {
			t.Fatal(err)
		}
		waitUntil(t, "the pod gets the node", func(ctx context.Context) (bool, error) {
			err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod)
			return err == nil && pod.Spec.NodeName == node2022, err
		})
	})
	//
	t.Run("a pod whose node selector contradicts its RuntimeClass is refused", func(t *testing.T) {
		class := "windows2019"
		_, err := createPod(t, c, clustertest.Namespace(t, lab.Cluster(t)), "pod",
			corev1.PodSpec{RuntimeClassName: &class, NodeSelector: map[string]string{corev1.LabelWindowsBuild: "10.0.20348"}})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "conflict") {
			t.Errorf("the API server says: %v", err)
		}
	})
	//
	t.Run("a toleration and a node selector place the old sample", func(t *testing.T) {
		namespace := clustertest.Namespace(t, lab.Cluster(t))
		apply(t, c, namespace, "win-webserver-tolerations.yaml")
		if pod := podOf(t, c, namespace); pod.Spec.NodeName == nodeLinux {
			t.Errorf("it is on node %s", pod.Spec.NodeName)
		}
	})
	//
	t.Run("so does the node selector by the old label", func(t *testing.T) {
		pod, err := createPod(t, c, clustertest.Namespace(t, lab.Cluster(t)), "pod", corev1.PodSpec{
			NodeSelector: map[string]string{"beta.kubernetes.io/os": "windows"},
			Tolerations:  []corev1.Toleration{{Key: "os", Value: "Windows", Effect: corev1.TaintEffectNoSchedule}},
		})
		if err != nil {
			t.Fatal(err)
		}
		waitUntil(t, "the pod gets a node", func(ctx context.Context) (bool, error) {
			err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod)
			return err == nil && pod.Spec.NodeName != "", err
		})
		if pod.Spec.NodeName == nodeLinux {
			t.Errorf("it is on node %s", pod.Spec.NodeName)
		}
	})
	//
	t.Run("without a toleration a pod waits", func(t *testing.T) {
		pod, err := createPod(t, c, clustertest.Namespace(t, lab.Cluster(t)), "pod", corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelOSStable: "windows"}})
		if err != nil {
			t.Fatal(err)
		}
		waitUntil(t, "the scheduler says that no node will do", func(ctx context.Context) (bool, error) {
			err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod)
			return err == nil && slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
				return condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && strings.Contains(condition.Message, "taint")
			}), err
		})
	})
}

// checkEndpoints checks that the Service selects the pod once the pod runs. The test sets the pod's status instead of a
// kubelet.
func checkEndpoints(t *testing.T, c client.Client, namespace string, pod corev1.Pod) {
	t.Helper()
	apply(t, c, namespace, "win-webserver-service.yaml")
	before := pod.DeepCopy()
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, "10.132.0.7",
		[]corev1.PodIP{{IP: "10.132.0.7"}}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady,
		Status: corev1.ConditionTrue})
	if err := c.Status().Patch(t.Context(), &pod, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the Service finds the pod", func(ctx context.Context) (bool, error) {
		slices := &discoveryv1.EndpointSliceList{}
		if err := c.List(ctx, slices, client.InNamespace(namespace),
			client.MatchingLabels{discoveryv1.LabelServiceName: "win-webserver"}); err != nil {
			return false, err
		}
		for _, slice := range slices.Items {
			for _, e := range slice.Endpoints {
				if len(slice.Ports) == 1 && *slice.Ports[0].Port == 80 && len(e.Addresses) == 1 && e.Addresses[0] == "10.132.0.7" &&
					*e.NodeName == node2019 {
					return true, nil
				}
			}
		}
		return false, nil
	})
}
