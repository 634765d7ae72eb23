package fakemachineapi

import (
	"context"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// base contains the shared parts of the controllers.
type base struct {
	client.Client
	Options
	live   client.Reader
	events events.EventRecorder
}

func uncachedObjects() []client.Object { return []client.Object{&corev1.Secret{}} }

// listMachines returns the Machines in the cache with the labels that the options select.
func (b base) listMachines(ctx context.Context, options ...client.ListOption) ([]machinev1.Machine, error) {
	list := &machinev1.MachineList{}
	err := b.List(ctx, list, append(options, client.InNamespace(b.Namespace))...)
	return list.Items, err
}

// nodeOf returns the Node that a Machine is linked to; nil if there is no link or the Node no longer exists.
func (b base) nodeOf(ctx context.Context, m *machinev1.Machine) (*corev1.Node, error) {
	if m.Status.NodeRef == nil {
		return nil, nil
	}
	node := &corev1.Node{}
	if err := b.Get(ctx, client.ObjectKey{Name: m.Status.NodeRef.Name}, node); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return node, nil
}

// ignoreGone ignores the error for an object that no longer exists or was changed or recreated.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
