package nodes

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/fleet"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
)

// +kubebuilder:rbac:groups=machine.openshift.io,resources=machines,verbs=get;list

// Machines reads Machines from the API server, not from a cache.
type Machines struct {
	Live client.Reader
	// Listed lists all Machines.
	Listed queue.Lists[machinev1beta1.Machine]
}

// Get reads the instance's Machine. It returns nil if the instance has no Machine or the Machine no longer
// exists, even if another Machine has the same name.
func (m Machines) Get(ctx context.Context, instance *v1alpha1.WindowsInstance) (*machinev1beta1.Machine, error) {
	reference := instance.Spec.Source.Machine
	if reference == nil {
		return nil, nil
	}
	machine := &machinev1beta1.Machine{}
	err := m.Live.Get(ctx, types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name}, machine)
	if apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err) { // a server without the Machine API responds differently
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Machine %s/%s: %w", reference.Namespace, reference.Name, err)
	}
	if machine.UID != reference.UID {
		return nil, nil
	}
	return machine, nil
}

// All returns the Machines of the cluster, with the guarantees of Nodes.Instances. A cluster without a Machine API
// has no Machines; an instance that refers to a Machine then causes an error.
func (m Machines) All(ctx context.Context, s *scope.Scope, instances []v1alpha1.WindowsInstance) ([]machinev1beta1.Machine, error) {
	requests := queue.Requests[machinev1beta1.Machine]{Next: &s.Session.Machines, Current: &s.Machines}
	return m.Listed.Get(ctx, client.ObjectKeyFromObject(s.Instance), s.Stored.ResourceVersion, requests,
		func(ctx context.Context) ([]machinev1beta1.Machine, error) {
			var list machinev1beta1.MachineList
			if err := fleet.ListMachines(ctx, m.Live, &list, instances); err != nil {
				return nil, fmt.Errorf("list Machines: %w", err)
			}
			return list.Items, nil
		})
}

// MachineName returns the namespace and name of the Machine of a source; empty if there is none.
func MachineName(source v1alpha1.Source) string {
	if source.Machine == nil {
		return ""
	}
	return source.Machine.Namespace + "/" + source.Machine.Name
}
