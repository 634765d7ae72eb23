package index

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func newInstance(name string, status v1alpha1.WindowsInstanceStatus) *v1alpha1.WindowsInstance {
	return &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "wmco", Name: name}, Status: status}
}

func newNode(name string, annotations map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations,
		Labels: map[string]string{corev1.LabelOSStable: "windows"}}}
}

func TestIndex_FindsObjectsByIndexedFields(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	elsewhere := newInstance("elsewhere", v1alpha1.WindowsInstanceStatus{DisruptionPending: true})
	elsewhere.Namespace = "other"
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(elsewhere,
		newInstance("new", v1alpha1.WindowsInstanceStatus{}),
		newInstance("claims", v1alpha1.WindowsInstanceStatus{NodeRef: &v1alpha1.NodeReference{Name: "win-1"}}),
		newInstance("has", v1alpha1.WindowsInstanceStatus{NodeRef: &v1alpha1.NodeReference{Name: "win-1", Confirmed: true},
			HostKey: &v1alpha1.HostKey{Key: "AAAA"}}),
		newInstance("clone", v1alpha1.WindowsInstanceStatus{HostKey: &v1alpha1.HostKey{Key: "AAAA"}, DisruptionPending: true}),
		newNode("win-1", map[string]string{v1alpha1.AnnotationInstance: "has", v1alpha1.AnnotationVersion: "12"}),
		newNode("win-2", map[string]string{v1alpha1.AnnotationVersion: "10"}), newNode("win-3", nil),
	)
	for _, index := range Indexes() {
		builder = builder.WithIndex(index.Object, index.Field, index.Values)
	}
	api := builder.Build()
	instances := Instances{Cache: api, Namespace: "wmco"}
	for name, c := range map[string]struct {
		find func(context.Context) ([]string, error)
		want []string
	}{
		"instances of a Node's name, granted or not": {func(ctx context.Context) ([]string, error) {
			found, err := instances.OfNode(ctx, "win-1")
			return objectNames(found, func(i *v1alpha1.WindowsInstance) client.Object { return i }), err
		}, []string{"claims", "has"}},
		"instances with a host key": {func(ctx context.Context) ([]string, error) {
			found, err := instances.WithHostKey(ctx, "AAAA")
			return objectNames(found, func(i *v1alpha1.WindowsInstance) client.Object { return i }), err
		}, []string{"clone", "has"}},
		"instances that wait for their turn": {func(ctx context.Context) ([]string, error) {
			found, err := instances.DisruptionPending(ctx)
			return objectNames(found, func(i *v1alpha1.WindowsInstance) client.Object { return i }), err
		}, []string{"clone"}},
		"the Node that is bound to an instance": {func(ctx context.Context) ([]string, error) {
			found, err := NodesBoundTo(ctx, api, "has")
			return objectNames(found, func(n *corev1.Node) client.Object { return n }), err
		}, []string{"win-1"}},
		"Nodes of an older operator": {func(ctx context.Context) ([]string, error) {
			found, err := LegacyNodes(ctx, api)
			return objectNames(found, func(n *corev1.Node) client.Object { return n }), err
		}, []string{"win-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := c.find(t.Context())
			if slices.Sort(found); err != nil || !slices.Equal(found, c.want) {
				t.Errorf("%q are found, error %v; want %q", found, err, c.want)
			}
		})
	}
}

func objectNames[T any](found []T, object func(*T) client.Object) (names []string) {
	for i := range found {
		names = append(names, object(&found[i]).GetName())
	}
	return names
}
