// Package fleet reads the state of the cluster's Windows hosts: the WindowsInstances, the Nodes and the
// WindowsDisruptionPolicy.
package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// Instance is a WindowsInstance.
type Instance struct {
	v1alpha1.WindowsInstance
	// Raw is the object with all fields, including those known only to another release of the operator.
	Raw *unstructured.Unstructured
}

// Fleet is a snapshot of all instances and policies.
type Fleet struct {
	// Instances are sorted by name.
	Instances []Instance
	// Policies are the policies of the operators: one for each namespace with an operator.
	Policies []v1alpha1.WindowsDisruptionPolicy
}

// Read reads the instances and disruption policies of a namespace, or of all namespaces if the namespace is empty.
func Read(ctx context.Context, reader client.Reader, namespace string) (Fleet, error) {
	instances, err := ReadInstances(ctx, reader, namespace)
	if err != nil {
		return Fleet{}, err
	}
	policies := &v1alpha1.WindowsDisruptionPolicyList{}
	if err := reader.List(ctx, policies, client.InNamespace(namespace)); err != nil {
		return Fleet{}, fmt.Errorf("list WindowsDisruptionPolicies: %w", err)
	}
	return Fleet{Instances: instances, Policies: policies.Items}, nil
}

// ReadInstances reads the instances of a namespace, or of all namespaces if the namespace is empty.
func ReadInstances(ctx context.Context, reader client.Reader, namespace string) ([]Instance, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("WindowsInstanceList"))
	if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list WindowsInstances: %w", err)
	}
	instances := make([]Instance, 0, len(list.Items))
	for i := range list.Items {
		instance := Instance{Raw: &list.Items[i]}
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(instance.Raw.Object, &instance.WindowsInstance)
		if err != nil {
			return nil, fmt.Errorf("read WindowsInstance %s: %w", instance.Raw.GetName(), err)
		}
		instances = append(instances, instance)
	}
	slices.SortFunc(instances, func(a, b Instance) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return instances, nil
}

// Events returns the events about an instance, the oldest first.
func Events(ctx context.Context, reader client.Reader, instance Instance) ([]corev1.Event, error) {
	list := &corev1.EventList{}
	if err := reader.List(ctx, list, client.InNamespace(instance.Namespace), client.MatchingFields{
		"involvedObject.kind": "WindowsInstance", "involvedObject.name": instance.Name,
	}); err != nil {
		return nil, fmt.Errorf("list the events of WindowsInstance %s: %w", instance.Name, err)
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Event) int { return LastSeen(a).Compare(LastSeen(b)) })
	return list.Items, nil
}

// Find returns the instance with the given name, Node name or address.
func Find(instances []Instance, name string) (Instance, error) {
	for _, goesBy := range []func(Instance) string{
		func(i Instance) string { return i.Name }, NodeName, func(i Instance) string { return i.Spec.Address },
	} {
		var found []Instance
		for _, instance := range instances {
			if strings.EqualFold(goesBy(instance), name) {
				found = append(found, instance)
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return Instance{}, fmt.Errorf("%q is ambiguous: %s. Specify one of these names", name, formatNames(found))
		}
	}
	if len(instances) == 0 {
		return Instance{}, fmt.Errorf("%w %q: there are no WindowsInstances", ErrUnknown, name)
	}
	return Instance{}, fmt.Errorf("%w %q; there are: %s", ErrUnknown, name, formatNames(instances))
}

// ErrUnknown is the error for a name that matches no host.
var ErrUnknown = errors.New("no WindowsInstance, Node or address of a Windows host is")

// maxNames is the maximum number of names in an error.
const maxNames = 10

func formatNames(instances []Instance) string {
	var list []string
	for _, instance := range instances {
		list = append(list, instance.Name)
	}
	if more := len(list) - maxNames; more > 0 {
		list = append(list[:maxNames], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, ", ")
}

// NodeName returns the name of the Node of an instance; empty without a Node.
func NodeName(instance Instance) string {
	if instance.Status.NodeRef == nil {
		return ""
	}
	return instance.Status.NodeRef.Name
}

// Completions returns the names of the hosts of a namespace and of their Nodes; none if they cannot be read.
func Completions(ctx context.Context, connect func() (client.Client, error), namespace string) []string {
	reader, err := connect()
	if err != nil {
		return nil
	}
	instances, err := ReadInstances(ctx, reader, namespace)
	if err != nil {
		return nil
	}
	var names []string
	for _, instance := range instances {
		names = append(names, instance.Name)
		if node := NodeName(instance); node != "" && node != instance.Name {
			names = append(names, node)
		}
	}
	return names
}
