package testenv

import (
	"context"
	"fmt"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// AvailabilityOptions select the objects to follow in addition to nodes.
type AvailabilityOptions struct {
	// PodNamespace and PodLabels select pods and follow the number of healthy ones. Without labels, no pods are
	// followed.
	PodNamespace string
	PodLabels    map[string]string
	// Except are Machines and BYOH hosts that never count, because the test itself breaks them.
	Except []string
}

// Availability follows Nodes, Machines, pods, the operator's list of disruptions, and the journals of hosts. Changes
// are recorded in order, from WatchAvailability to Report.
type Availability struct {
	env     *Environment
	options AvailabilityOptions
	started time.Time
	history *History
}

// WatchAvailability starts to follow and returns when the current state is known.
func (r *Environment) WatchAvailability(ctx context.Context, options AvailabilityOptions) (*Availability, error) {
	a := &Availability{env: r, options: options, started: r.options.Clock.Now()}
	kinds := []*FollowedKind{
		{Name: kindNode, List: func() client.ObjectList { return &corev1.NodeList{} }},
		{Name: kindPolicy, List: func() client.ObjectList { return &v1alpha1.WindowsDisruptionPolicyList{} },
			Options: []client.ListOption{client.InNamespace(r.Namespace())}},
	}
	if r.options.MachineAPI {
		kinds = append(kinds, &FollowedKind{Name: kindMachine, List: func() client.ObjectList {
			return &machinev1.MachineList{}
		},
			Options: []client.ListOption{
				client.InNamespace(v1alpha1.MachineNamespace), client.MatchingLabels{v1alpha1.LabelMachineOSID: osWindows},
			}})
	}
	if len(options.PodLabels) > 0 {
		kinds = append(kinds, &FollowedKind{Name: kindPod, List: func() client.ObjectList { return &corev1.PodList{} },
			Options: []client.ListOption{client.InNamespace(options.PodNamespace), client.MatchingLabels(options.PodLabels)}})
	}
	var err error
	if a.history, err = r.Follow(ctx, kinds...); err != nil {
		return nil, fmt.Errorf("follow the availability of nodes: %w", err)
	}
	return a, nil
}

// Kinds of changes.
const (
	kindNode    = "Node"
	kindMachine = "Machine"
	kindPod     = "Pod"
	kindPolicy  = "WindowsDisruptionPolicy"
)

// Report waits until all changes in the API server are recorded, and returns the events so far. Following continues.
func (a *Availability) Report(ctx context.Context) (AvailabilityReport, error) {
	initial, changes, err := a.history.Changes(ctx)
	if err != nil {
		return AvailabilityReport{}, fmt.Errorf("follow the availability of nodes: %w", err)
	}
	report := a.newReplay(initial).run(changes, a.serviceChanges())
	report.Lost = a.history.Lost()
	return report, nil
}

// Stop stops following.
func (a *Availability) Stop() { a.history.Stop() }
