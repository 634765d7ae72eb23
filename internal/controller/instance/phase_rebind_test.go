package instance

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
)

// A regression: the disruption policy did not know such a node. The node was neither counted nor named when its
// host was restarted.
func TestRebind_NodeRefWrittenBeforeDisruption(t *testing.T) {
	for name, change := range map[string]func(*corev1.Node){
		"with the pinned host key":  func(*corev1.Node) {},
		"without a pinned host key": withoutAnnotation(v1alpha1.AnnotationHostKey),
	} {
		t.Run(name, func(t *testing.T) {
			x := newUpgradeTrial(t, v1alpha1.UpgradeInPlace, true)
			x.changeNode(change)
			x.changeStatus(func(status *v1alpha1.WindowsInstanceStatus) { *status = v1alpha1.WindowsInstanceStatus{} })
			s := x.newScope(x.getInstance())
			if o := x.newDependencies().rebind.reconcile(t.Context(), s); o == nil || o.Outcome != result.Continue {
				t.Fatalf("it goes on: %+v", o)
			}
			if _, err := x.newDependencies().status.Write(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			written, node := x.getInstance().Status, x.getNode()
			if ref := written.NodeRef; ref == nil || ref.Name != node.Name || ref.UID != string(node.UID) || !ref.Confirmed {
				t.Errorf("the written Node is %+v; want %s (%s)", ref, node.Name, node.UID)
			}
			key := node.Annotations[v1alpha1.AnnotationHostKey]
			if pinned := written.HostKey; key == "" && pinned != nil || key != "" && (pinned == nil || pinned.Key != key) {
				t.Errorf("the written host key is %+v; want %q", pinned, key)
			}
		})
	}
}
