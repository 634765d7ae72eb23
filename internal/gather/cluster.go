package gather

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// maxLogSize is the maximum collected size of a log's end, in bytes.
const maxLogSize = 10 << 20

// Limits of the logs of one node, because the kubelet reports their number. A node has about a dozen logs.
const (
	maxLogs     = 50
	maxLogBytes = 128 << 20
)

// collectCluster collects the data that does not belong to one host. It reads no Secret, and only the list of hosts of
// the ConfigMaps.
func (c *collection) collectCluster(ctx context.Context, namespace string) {
	here := client.InNamespace(namespace)
	c.writeObjects(ctx, "policy.yaml", v1alpha1.GroupVersion.WithKind("WindowsDisruptionPolicy"), here)
	c.writeObject(ctx, "windows-instances.yaml", newGroupVersionKind("", "v1", "ConfigMap"),
		client.ObjectKey{Namespace: namespace, Name: "windows-instances"})
	c.writeObjects(ctx, "events.yaml", newGroupVersionKind("", "v1", "Event"), here)
	c.writeObjects(ctx, "operator/deployments.yaml", newGroupVersionKind("apps", "v1", "Deployment"), here)
	c.writeObjects(ctx, "operator/subscriptions.yaml", newGroupVersionKind("operators.coreos.com", "v1alpha1", "Subscription"), here)
	c.writeObjects(ctx, "operator/clusterserviceversions.yaml",
		newGroupVersionKind("operators.coreos.com", "v1alpha1", "ClusterServiceVersion"), here)
	c.writeObjects(ctx, "cluster/nodes.yaml", newGroupVersionKind("", "v1", "Node"))
	for file, name := range map[string]string{"version": "ClusterVersion", "infrastructure": "Infrastructure",
		"network": "Network"} {
		c.writeObjects(ctx, "cluster/"+file+".yaml", newGroupVersionKind("config.openshift.io", "v1", name))
	}
	c.writeObjects(ctx, "cluster/operator-network.yaml", newGroupVersionKind("operator.openshift.io", "v1", "Network"))
	for file, name := range map[string]string{"machinesets": "MachineSet", "machines": "Machine"} {
		c.writeObjects(ctx, "cluster/"+file+".yaml", newGroupVersionKind("machine.openshift.io", "v1beta1", name),
			client.InNamespace(v1alpha1.MachineNamespace))
	}
}

// collectOperator collects the pods of the operator's namespace and their logs, including the logs of previous
// containers.
func (c *collection) collectOperator(ctx context.Context, clientset kubernetes.Interface, namespace string) {
	c.writeObjects(ctx, "operator/pods.yaml", newGroupVersionKind("", "v1", "Pod"), client.InNamespace(namespace))
	pods := &corev1.PodList{}
	if err := c.reader.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return // already recorded above
	}
	for _, pod := range pods.Items {
		for _, status := range pod.Status.ContainerStatuses {
			file := fmt.Sprintf("operator/%s-%s", fileName(pod.Name), fileName(status.Name))
			c.containerLog(ctx, clientset, pod, file+".log", corev1.PodLogOptions{Container: status.Name})
			if status.RestartCount > 0 {
				c.containerLog(ctx, clientset, pod, file+".previous.log",
					corev1.PodLogOptions{Container: status.Name, Previous: true})
			}
		}
	}
}

func (c *collection) containerLog(ctx context.Context, clientset kubernetes.Interface, pod corev1.Pod, file string,
	options corev1.PodLogOptions) {
	options.Timestamps, options.LimitBytes = true, ptr.To[int64](maxLogSize)
	stream, err := clientset.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &options).Stream(ctx)
	if err != nil {
		c.recordGap(file, err)
		return
	}
	defer stream.Close()
	content, err := io.ReadAll(io.LimitReader(stream, maxLogSize))
	if err != nil {
		c.recordGap(file, err)
	}
	c.write(file, content)
}
