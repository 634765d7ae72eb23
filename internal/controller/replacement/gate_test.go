package replacement

import (
	"context"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

// budget is a gate that limits the number of MachineSets disrupted at once. It refuses Machines of an incomplete
// set and the last working Machine of a set with several. A set counts as disrupted until it is complete again.
type budget struct {
	client client.Reader
	max    int
	// disruptedSets are the MachineSets of allowed instances.
	disruptedSets map[string]string
	// inPlace are instances with hosts that are being changed; refused is the decision for all requests; err is a
	// fault.
	inPlace  []string
	refused  *disruptionpolicy.Decision
	err      error
	requests []disruptionpolicy.Request
	released []string
}

func newBudget(client client.Reader) *budget {
	return &budget{client: client, max: 1, disruptedSets: map[string]string{}}
}

func (b *budget) Acquire(ctx context.Context, request disruptionpolicy.Request) (disruptionpolicy.Decision, error) {
	b.requests = append(b.requests, request)
	if b.refused != nil || b.err != nil {
		return ptr.Deref(b.refused, disruptionpolicy.Decision{}), b.err
	}
	allowed := disruptionpolicy.Decision{Decision: policy.Decision{Allowed: true}}
	if _, own := b.disruptedSets[request.Instance]; own {
		return allowed, nil
	}
	instance := &v1alpha1.WindowsInstance{}
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: request.Instance}, instance); err != nil {
		return disruptionpolicy.Decision{}, err
	}
	sets, err := b.readSetStates(ctx)
	if err != nil {
		return disruptionpolicy.Decision{}, err
	}
	for name, set := range b.disruptedSets {
		if sets[set].isComplete() {
			delete(b.disruptedSets, name)
		}
	}
	own, candidate := sets.findMachine(request.Instance)
	switch {
	case own == nil:
		return disruptionpolicy.Decision{Decision: policy.Decision{Reason: v1alpha1.ReasonDisruptionPolicyInvalid,
			Message: "No MachineSet."}}, nil
	case len(b.disruptedSets) >= b.max, own.missing > 0:
		return disruptionpolicy.Decision{Decision: policy.Decision{Reason: v1alpha1.ReasonMaxUnavailableReached,
			Message: "One at a time."}}, nil
	case candidate && own.working == 1 && own.machines > 1:
		return disruptionpolicy.Decision{Decision: policy.Decision{Reason: v1alpha1.ReasonLastAvailableMachine, Message: "The last."}},
			nil
	}
	b.disruptedSets[request.Instance] = own.name
	return allowed, nil
}

func (b *budget) Release(_ context.Context, instance string) error {
	b.released = append(b.released, instance)
	delete(b.disruptedSets, instance)
	return nil
}

func (b *budget) Holds(_ context.Context, instance string) (bool, error) {
	return slices.Contains(b.inPlace, instance), nil
}

func (b *budget) Settings(context.Context) (disruptionpolicy.Settings, error) {
	return disruptionpolicy.Settings{}, nil
}

// setState is the state of a MachineSet: working is the number of its Machines that run and have a Node in service.
type setState struct {
	name                                 string
	replicas, machines, working, missing int
	members                              map[string]bool // whether each Machine works
}

func (s *setState) isComplete() bool {
	return s == nil || s.machines == s.replicas && s.working == s.replicas
}

type setStates map[string]*setState

// findMachine returns the MachineSet of a Machine, and whether the Machine works.
func (s setStates) findMachine(machine string) (*setState, bool) {
	for _, set := range s {
		if working, member := set.members[machine]; member {
			return set, working
		}
	}
	return nil, false
}

func (b *budget) readSetStates(ctx context.Context) (setStates, error) {
	var sets machinev1beta1.MachineSetList
	var machines machinev1beta1.MachineList
	var nodes corev1.NodeList
	for _, list := range []client.ObjectList{&sets, &machines, &nodes} {
		if err := b.client.List(ctx, list); err != nil {
			return nil, err
		}
	}
	inService := map[string]bool{}
	for i := range nodes.Items {
		inService[nodes.Items[i].Name] = fleetNode(&nodes.Items[i], "").Ready
	}
	states := setStates{}
	for _, set := range sets.Items {
		states[set.Name] = &setState{name: set.Name, replicas: int(*set.Spec.Replicas), members: map[string]bool{}}
	}
	for i := range machines.Items {
		machine := &machines.Items[i]
		owner := metav1.GetControllerOf(machine)
		if owner == nil {
			continue
		}
		set, phase := states[owner.Name], ptr.Deref(machine.Status.Phase, "")
		set.machines++
		set.members[machine.Name] = false
		switch {
		case !machine.DeletionTimestamp.IsZero(), phase != machinev1beta1.PhaseRunning && phase != machinev1beta1.PhaseFailed:
			set.missing++
		case phase == machinev1beta1.PhaseRunning && machine.Status.NodeRef != nil && inService[machine.Status.NodeRef.Name]:
			set.members[machine.Name] = true
			set.working++
		}
	}
	for _, set := range states {
		set.missing += max(0, set.replicas-set.machines)
	}
	return states, nil
}
