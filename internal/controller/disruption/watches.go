package disruption

import (
	"errors"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/fleet"
	"github.com/windows-machine-config/wmco/internal/controller/gather"
	"github.com/windows-machine-config/wmco/internal/controller/optional"
	"github.com/windows-machine-config/wmco/internal/policy/nodestate"
)

const (
	// idleShare is how many times as long as the last look took the next one waits: where there are many hosts, looking
	// takes long.
	idleShare = 10
	// LongestGathering is the longest time that changes are gathered.
	LongestGathering = 10 * time.Second
)

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named("disruption").
		Watches(&v1alpha1.WindowsDisruptionPolicy{}, r.once()).
		Watches(&corev1.Node{}, r.once(), builder.WithPredicates(gather.WhenOther(nodeLook))).
		Watches(&v1alpha1.WindowsInstance{}, r.once(), builder.WithPredicates(gather.WhenOther(instanceLook))).
		WatchesRawSource(gather.Start()).
		WithOptions(gather.Options(r.Clock)).
		Build(r)
	r.controller = c
	return err
}

// WatchMachines has the controller watch the Machines and MachineSets in a cache.
func (r *Reconciler) WatchMachines(machines cache.Cache) error {
	return errors.Join(
		r.controller.Watch(optional.Kind(machines, &machinev1beta1.Machine{}, r.once(), gather.WhenOther(machineLook))),
		r.controller.Watch(optional.Kind(machines, &machinev1beta1.MachineSet{}, r.once(),
			predicate.GenerationChangedPredicate{})),
	)
}

// once asks for one look for all that changes within a short time, longer where a look takes long.
func (r *Reconciler) once() handler.EventHandler {
	return gather.Changes(func() time.Duration {
		return min(LongestGathering, max(gather.Least, idleShare*time.Duration(r.took.Load())))
	})
}

func nodeLook(n *corev1.Node) any {
	return []any{nodestate.Ready(n), nodestate.Unproven(n), n.Annotations[v1alpha1.AnnotationVersion], n.Status.NodeInfo.KubeletVersion, n.Labels}
}

func instanceLook(i *v1alpha1.WindowsInstance) any {
	return []any{
		i.Spec, i.Annotations[v1alpha1.AnnotationForgetHost], ptr.Deref(i.Status.NodeRef, v1alpha1.NodeReference{}).Name,
		i.Status.Version, i.Status.Configuration, i.Status.FailedChange, i.Status.Readiness,
	}
}

func machineLook(m *machinev1beta1.Machine) any {
	return []any{going(m), ptr.Deref(m.Status.Phase, ""), fleet.NodeNameOf(m), m.Labels, m.OwnerReferences}
}
