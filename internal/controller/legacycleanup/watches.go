package legacycleanup

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// versionAnnotations returns the annotations that record the operator version required by a host.
func versionAnnotations(node *corev1.Node) [3]string {
	return [3]string{
		node.Annotations[v1alpha1.AnnotationVersion], node.Annotations[v1alpha1.AnnotationInstance],
		node.Annotations[v1alpha1.AnnotationDesiredVersion],
	}
}

// pinChanged passes updates that pin the key of a host.
func pinChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1alpha1.WindowsInstance)
			after, ok2 := e.ObjectNew.(*v1alpha1.WindowsInstance)
			return ok && ok2 && before.Status.HostKey == nil && after.Status.HostKey != nil
		},
	}
}
