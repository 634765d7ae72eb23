// Package v1alpha1 is the operator's API: the kinds WindowsInstance and WindowsDisruptionPolicy in group windowsmachineconfig.openshift.io.
// +kubebuilder:object:generate=true
// +groupName=windowsmachineconfig.openshift.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "windowsmachineconfig.openshift.io", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &WindowsInstance{}, &WindowsInstanceList{}, &WindowsDisruptionPolicy{},
		&WindowsDisruptionPolicyList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
