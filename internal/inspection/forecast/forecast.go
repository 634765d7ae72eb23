// Package forecast says what the operator would change on a host now: the steps that the agent plans for the NodeSpec
// that the operator would send, what is sent for them, and which pods would have to leave. It changes nothing.
package forecast

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/drain"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/inspection/visit"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/sshkey"
	"github.com/windows-machine-config/wmco/internal/text"
)

// Forecast is what would happen to one host.
type Forecast struct {
	Instance string `json:"instance"`
	Address  string `json:"address"`
	Node     string `json:"node,omitempty"`
	// Error says why nothing is known; all else is empty then.
	Error string `json:"error,omitempty"`
	// Removed says that the host is given back and its Node deleted, and Replaced that its Machine is deleted, so that its
	// MachineSet makes another one. There are no steps then.
	Removed  bool `json:"removed,omitempty"`
	Replaced bool `json:"replaced,omitempty"`
	// HeldBack is the reason why the operator does nothing of this now: a new host would be refused. Empty if it would not.
	HeldBack string `json:"heldBack,omitempty"`
	// Notes are what else there is to know: that the operator is paused for this host, for example.
	Notes []string `json:"notes,omitempty"`
	Steps []Step   `json:"steps"`
	// Needs are what the rest of the configuration waits for, besides these steps.
	Needs []nodespec.Need `json:"needs,omitempty"`
	// FilesToSend are files and patches of the payload, and BytesToSend is about their size on the wire.
	FilesToSend int   `json:"filesToSend"`
	BytesToSend int64 `json:"bytesToSend"`
	// Drains says that the node is drained before the steps, and Pods are those that are evicted then.
	Drains bool  `json:"drains"`
	Pods   []Pod `json:"pods,omitempty"`
}

// Step is one change of the host.
type Step struct {
	Name         string `json:"name"`
	Reason       string `json:"reason"`
	DisturbsPods bool   `json:"disturbsPods,omitempty"`
	Restarts     bool   `json:"restartsHost,omitempty"`
}

// Pod would be evicted.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Held says why it could not be evicted now; empty when it could.
	Held string `json:"held,omitempty"`
}

// Changes reports whether anything would be changed.
func (f Forecast) Changes() bool { return len(f.Steps) > 0 || f.Removed || f.Replaced }

// Forecaster makes forecasts. What it works with is the operator's own.
type Forecaster struct {
	Reader    client.Client
	Clientset kubernetes.Interface
	Visitor   visit.Visitor
	Line      support.ReleaseLine
	Specs     desired.Specs
	Namespace string
}

// Of returns the forecast of an instance. When the context has ended, there is none, and the error says what may be left on
// the host, if anything is. Any other error is in the forecast.
func (f Forecaster) Of(ctx context.Context, instance *v1alpha1.WindowsInstance, cluster nodespec.Cluster,
	key sshkey.Key) (Forecast, error) {
	return f.At(ctx, nil, instance, cluster, key)
}

// At returns the forecast of an instance as Of does, during a visit of its host that goes on; nil for one of its own.
func (f Forecaster) At(ctx context.Context, stay *visit.Visit, instance *v1alpha1.WindowsInstance, cluster nodespec.Cluster,
	key sshkey.Key) (Forecast, error) {
	s := scope.New(instance, &scope.Session{}, &hostjobs.Host{}, clock.RealClock{})
	s.Cluster, s.Key = cluster, key
	made := f.blank(s)
	if instance.Spec.DesiredState != v1alpha1.DesiredStateNode {
		return made, nil
	}
	filled := made
	err := f.fill(ctx, stay, s, &filled)
	if ctx.Err() != nil {
		var left *visit.LeftError
		if errors.As(err, &left) {
			return made, fmt.Errorf("host %s: %w", made.Address, left)
		}
		return made, nil
	}
	if err != nil {
		made.Error = text.Printable(err.Error())
		return made, nil
	}
	return filled, nil
}

// Unknown returns the forecast of an instance whose host nobody asks, with the reason. One that the operator does not want to
// be a node has a forecast all the same.
func (f Forecaster) Unknown(instance *v1alpha1.WindowsInstance, why string) Forecast {
	made := f.blank(scope.New(instance, &scope.Session{}, &hostjobs.Host{}, clock.RealClock{}))
	if instance.Spec.DesiredState == v1alpha1.DesiredStateNode {
		made.Error = text.Printable(why)
	}
	return made
}

// blank returns a forecast of what is known without the host.
func (f Forecaster) blank(s *scope.Scope) Forecast {
	instance := s.Instance
	return Forecast{Instance: instance.Name, Address: instance.Spec.Address, Node: s.NodeName(), Steps: []Step{},
		Notes: notes(s), Removed: instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved}
}

// notes are what the instance itself says of what the operator would do.
func notes(s *scope.Scope) []string {
	var notes []string
	instance := s.Instance
	switch instance.Spec.DesiredState {
	case v1alpha1.DesiredStateRemoved:
		return []string{"The host is being removed. " + instance.Status.NextAction}
	case v1alpha1.DesiredStateUnmanaged:
		return []string{"The operator leaves the host alone. " + instance.Status.NextAction}
	}
	if instance.Spec.Paused {
		notes = append(notes, "The operator is paused for this host, and does nothing of this until it is resumed.")
	}
	if failed := instance.Status.FailedChange; failed != nil {
		notes = append(notes, "A change has failed: "+text.Sentence(failed.Message)+" "+instance.Status.NextAction)
	}
	return notes
}

// errNotLookedAt is of a host on which the agent's folder may be open to others: no NodeSpec is sent there. It may have
// been reverted to an earlier state.
func errNotLookedAt(instance *v1alpha1.WindowsInstance) error {
	return fmt.Errorf("the operator has not looked at this host yet, or not as it is now. %s See: kubectl windows diagnose %s",
		cmp.Or(instance.Status.NextAction, "It does so as soon as it can."), instance.Name)
}

func (f Forecaster) fill(ctx context.Context, stay *visit.Visit, s *scope.Scope, made *Forecast) error {
	if s.Instance.Status.Host == nil {
		return errNotLookedAt(s.Instance)
	}
	inCluster := nodes.Machines{Live: f.Reader}
	node, err := nodes.Nodes{Client: f.Reader, Live: f.Reader, Machines: inCluster, Namespace: f.Namespace}.Of(ctx, s.Instance)
	if err != nil {
		return err
	}
	spec, err := f.Specs.Of(s, node)
	if err != nil {
		return err
	}
	if stay != nil {
		err = f.ask(ctx, stay, spec, made)
	} else {
		if stay, err = f.begin(ctx, inCluster, s); err != nil {
			return err
		}
		err = errors.Join(f.ask(ctx, stay, spec, made), stay.Leave(ctx))
	}
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		if errors.Is(err, visit.ErrOpen) {
			return errNotLookedAt(s.Instance)
		}
		return asError(hostjobs.FailureOf(v1alpha1.ConditionReachable, err))
	}
	f.noteRefusal(s, node, made)
	if node == nil || !s.Released(node) {
		return nil // nothing is drained that takes no pods yet
	}
	if f.isReplaced(s, node, spec, made) {
		return nil
	}
	restartAsked(node, made)
	return f.drained(ctx, inCluster, s, node, made)
}

// begin begins a visit of its own.
func (f Forecaster) begin(ctx context.Context, inCluster nodes.Machines, s *scope.Scope) (*visit.Visit, error) {
	machine, err := inCluster.Of(ctx, s.Instance)
	if err != nil {
		return nil, fmt.Errorf("read the host key that the Machine announces: %w", err)
	}
	announced := ""
	if machine != nil {
		announced = machine.Annotations[v1alpha1.AnnotationExpectedHostKey]
	}
	target, o := hostjobs.TargetOf(s.Instance, s.Key, s.Cluster, announced)
	if o != nil {
		return nil, asError(o)
	}
	stay, err := f.Visitor.Begin(ctx, target)
	if err != nil {
		return nil, asError(hostjobs.NotConnected(err))
	}
	return stay, nil
}

// isReplaced reports whether the Machine of a node is deleted instead of any step: another version of the operator has
// configured it, and it is to be something else. It notes that in the forecast.
func (f Forecaster) isReplaced(s *scope.Scope, node *corev1.Node, spec nodespec.NodeSpec, made *Forecast) bool {
	applied := s.Instance.Status.SpecDigest
	changes := len(made.Steps) > 0 || applied != "" && applied != spec.Digest()
	if !changes || !(&drain.Turn{Version: f.Specs.Version}).Replaced(s, node) {
		return false
	}
	when := " is deleted and replaced when the WindowsDisruptionPolicy allows it."
	if made.HeldBack != "" {
		when = " is deleted and replaced when a new host would be accepted and the WindowsDisruptionPolicy allows it."
	}
	*made = Forecast{Instance: made.Instance, Address: made.Address, Node: made.Node, Steps: []Step{}, Replaced: true,
		HeldBack: made.HeldBack, Notes: append(made.Notes, "Machine "+nodes.MachineName(s.Instance.Spec.Source)+when)}
	return true
}

// asError has the words of a result, and what to do.
func asError(o *result.Result) error { return errors.New(text.Sentence(o.Message) + " " + o.Next) }

// ask has the agent plan.
func (f Forecaster) ask(ctx context.Context, stay *visit.Visit, spec nodespec.NodeSpec, made *Forecast) error {
	if err := stay.Settle(ctx, true); err != nil {
		return err
	}
	planned, err := stay.Plan(ctx, spec)
	if err != nil {
		return err
	}
	for _, step := range planned.Plan.Steps {
		made.Steps = append(made.Steps, Step{
			Name: text.Plain(step.Name, longestFact), Reason: text.Plain(step.Reason, result.LongestMessage),
			DisturbsPods: step.DisturbsPods, Restarts: step.Reboots,
		})
	}
	for _, need := range planned.Plan.Needs {
		made.Needs = append(made.Needs, nodespec.Need(text.Plain(string(need), longestFact)))
	}
	var present map[string]string
	if planned.Facts != nil {
		present = planned.Facts.Payload
	}
	sent := hostjobs.Lacking(spec, present, f.Specs.Payload)
	agent, err := f.Specs.Payload.Agent()
	if err != nil {
		return err
	}
	there, err := stay.Has(ctx, nodespec.AgentPath(agent.SHA256), agent.Size)
	if err != nil {
		return err
	}
	if !there {
		made.FilesToSend, made.BytesToSend = 1, agent.Size
		for _, patch := range f.Specs.Payload.Patches(agent.SHA256) {
			former, err := stay.Exists(ctx, nodespec.AgentPath(patch.From))
			if err != nil {
				return err
			}
			if former {
				made.BytesToSend = patch.Size
				break
			}
		}
	}
	if len(sent) == 0 {
		return nil
	}
	size, err := f.Specs.Payload.ArchiveSize(sent)
	made.FilesToSend, made.BytesToSend = made.FilesToSend+len(sent), made.BytesToSend+size
	return err
}

// longestFact limits a name that a host tells, in bytes.
const longestFact = 256

// restartAsked adds the restart that somebody has asked for on the Node, unless the plan has one.
func restartAsked(node *corev1.Node, made *Forecast) {
	if !nodes.RebootWanted(node) {
		return
	}
	for _, step := range made.Steps {
		if step.Restarts {
			return
		}
	}
	made.Steps = append(made.Steps, Step{
		Name: plan.Name(plan.Reboot{}), Reason: "the annotation " + v1alpha1.AnnotationRebootRequired + " of the Node requests it",
		DisturbsPods: true, Restarts: true,
	})
}

// drained adds the pods that would have to leave.
func (f Forecaster) drained(ctx context.Context, inCluster nodes.Machines, s *scope.Scope, node *corev1.Node, made *Forecast) error {
	for _, step := range made.Steps {
		made.Drains = made.Drains || step.DisturbsPods || step.Restarts
	}
	if !made.Drains {
		return nil
	}
	machine, err := inCluster.Of(ctx, s.Instance)
	if err != nil {
		return err
	}
	if machine != nil {
		if _, without := machine.Annotations[v1alpha1.AnnotationExcludeDrain]; without {
			made.Drains = false
			made.Notes = append(made.Notes, "The annotation "+v1alpha1.AnnotationExcludeDrain+" of the Machine excludes its node from the drain.")
			return nil
		}
	}
	evictions, err := drain.Drainer{Clientset: f.Clientset}.Preview(ctx, node)
	for _, each := range evictions {
		made.Pods = append(made.Pods, Pod{Namespace: each.Namespace, Name: each.Name, Held: each.Refused})
	}
	return err
}
