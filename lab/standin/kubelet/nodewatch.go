package kubelet

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// nodeWatch watches the kubelet's own Node. A kubelet compares its status with the Node that other clients may
// have changed: if the node controller marked the Node as lost, the next check corrects the status. The real
// kubelet reads the Node at each check; a watch costs less in a large or long-lived lab. Source:
// k8s.io/kubernetes, pkg/kubelet/kubelet_node_status.go, tryUpdateNodeStatus.
type nodeWatch struct {
	name     string
	informer cache.SharedIndexInformer
}

func newNodeWatch(k *kubelet) *nodeWatch {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, k.config.nodeName).String()
	factory := informers.NewSharedInformerFactoryWithOptions(k.client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = selector }),
		informers.WithTransform(withoutManagedFields))
	return &nodeWatch{k.config.nodeName, factory.Core().V1().Nodes().Informer()}
}

// withoutManagedFields removes the managed fields, which are most of a Node and unused by the kubelet.
func withoutManagedFields(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		node.ManagedFields = nil
	}
	return object, nil
}

func (w *nodeWatch) run(ctx context.Context) { w.informer.RunWithContext(ctx) }

// latestNode returns the known Node, or the watched Node if it is newer.
func (w *nodeWatch) latestNode(known *corev1.Node) *corev1.Node {
	object, _, _ := w.informer.GetStore().GetByKey(w.name)
	seen, ok := object.(*corev1.Node)
	if !ok {
		return known
	}
	if later, err := resourceversion.CompareResourceVersion(seen.ResourceVersion, known.ResourceVersion); err != nil || later <= 0 {
		return known
	}
	return seen
}
