// Package dryrun predicts the operator's next changes of a host: the steps that the agent plans for the
// current NodeSpec, the files to send, and the pods to evict. The package changes nothing.
package dryrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

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
	"github.com/windows-machine-config/wmco/internal/inspection/hostsession"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/sanitize"
	"github.com/windows-machine-config/wmco/internal/sshkey"
)

// Forecast is the predicted change of one host.
type Forecast struct {
	Instance string `json:"instance"`
	Address  string `json:"address"`
	Node     string `json:"node,omitempty"`
	// Error is the reason for an unknown forecast; all other fields are empty then.
	Error string `json:"error,omitempty"`
	// Removed means that the host is restored and the Node deleted. Replaced means that the Machine is deleted,
	// and replaced by the MachineSet. There are no steps then.
	Removed  bool `json:"removed,omitempty"`
	Replaced bool `json:"replaced,omitempty"`
	// HeldBack is the reason that the operator makes none of these changes now: a new host would be refused.
	// Otherwise it is empty.
	HeldBack string `json:"heldBack,omitempty"`
	// Notes contains additional information, for example that the operator is paused for this host.
	Notes []string `json:"notes,omitempty"`
	Steps []Step   `json:"steps"`
	// Needs holds the prerequisites of the remaining configuration, besides these steps.
	Needs []nodespec.Need `json:"needs,omitempty"`
	// FilesToSend counts files and patches of the payload, and BytesToSend is their approximate size on the wire.
	FilesToSend int   `json:"filesToSend"`
	BytesToSend int64 `json:"bytesToSend"`
	// Drains means that the node is drained before the steps, and Pods are the evicted pods.
	Drains bool  `json:"drains"`
	Pods   []Pod `json:"pods,omitempty"`
}

// Step is one change of the host.
type Step struct {
	Name         string `json:"name"`
	Reason       string `json:"reason"`
	DisruptsPods bool   `json:"disruptsPods,omitempty"`
	Restarts     bool   `json:"restartsHost,omitempty"`
}

// Pod is a pod to evict.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Held is the reason that blocks the eviction now; empty if nothing blocks it.
	Held string `json:"held,omitempty"`
}

// HasChanges reports whether anything would be changed.
func (f Forecast) HasChanges() bool { return len(f.Steps) > 0 || f.Removed || f.Replaced }

// Forecaster computes forecasts with the logic of the operator.
type Forecaster struct {
	Reader    client.Client
	Clientset kubernetes.Interface
	Connector hostsession.Connector
	Line      support.ReleaseLine
	Specs     desired.SpecBuilder
	Namespace string
}

// Of returns the forecast of an instance. If the context has ended, there is no forecast, and the error reports
// files that may be left on the host, if any. Any other error is in the forecast.
func (f Forecaster) Of(ctx context.Context, instance *v1alpha1.WindowsInstance, cluster nodespec.Cluster,
	key sshkey.Key) (Forecast, error) {
	return f.At(ctx, nil, instance, cluster, key)
}

// At returns the forecast of an instance like Of, during an existing visit of its host; nil begins a separate visit.
func (f Forecaster) At(ctx context.Context, stay *hostsession.Session, instance *v1alpha1.WindowsInstance, cluster nodespec.Cluster,
	key sshkey.Key) (Forecast, error) {
	s := scope.New(instance, &scope.Session{}, &hostjobs.Host{}, clock.RealClock{})
	s.Cluster, s.Key = cluster, key
	made := f.newForecast(s)
	if instance.Spec.DesiredState != v1alpha1.DesiredStateNode {
		return made, nil
	}
	filled := made
	err := f.fillForecast(ctx, stay, s, &filled)
	if ctx.Err() != nil {
		var left *hostsession.LeftoverError
		if errors.As(err, &left) {
			return made, fmt.Errorf("host %s: %w", made.Address, left)
		}
		return made, nil
	}
	if err != nil {
		made.Error = sanitize.Printable(err.Error())
		return made, nil
	}
	return filled, nil
}

// Unknown returns the forecast of an instance without a request to its host, with the reason. An instance with
// a desired state other than node has a complete forecast nonetheless.
func (f Forecaster) Unknown(instance *v1alpha1.WindowsInstance, why string) Forecast {
	made := f.newForecast(scope.New(instance, &scope.Session{}, &hostjobs.Host{}, clock.RealClock{}))
	if instance.Spec.DesiredState == v1alpha1.DesiredStateNode {
		made.Error = sanitize.Printable(why)
	}
	return made
}

// newForecast returns a forecast of the facts known without the host.
func (f Forecaster) newForecast(s *scope.Scope) Forecast {
	instance := s.Instance
	return Forecast{Instance: instance.Name, Address: instance.Spec.Address, Node: s.NodeName(), Steps: []Step{},
		Notes: instanceNotes(s), Removed: instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved}
}

// instanceNotes returns the information in the instance about changes by the operator.
func instanceNotes(s *scope.Scope) []string {
	var notes []string
	instance := s.Instance
	switch instance.Spec.DesiredState {
	case v1alpha1.DesiredStateRemoved:
		return []string{"The host is being removed. " + instance.Status.NextAction}
	case v1alpha1.DesiredStateUnmanaged:
		return []string{"The operator does not manage the host. " + instance.Status.NextAction}
	}
	if instance.Spec.Paused {
		notes = append(notes, "The host is paused: the operator makes no changes until it is resumed.")
	}
	if failed := instance.Status.FailedChange; failed != nil {
		notes = append(notes, "A change has failed: "+sanitize.Sentence(failed.Message)+" "+instance.Status.NextAction)
	}
	return notes
}

// errNotInspected returns the error for a host where non-administrators may read the agent's directory: no
// NodeSpec is sent there. The host may have been reverted to an earlier state.
func errNotInspected(instance *v1alpha1.WindowsInstance) error {
	return fmt.Errorf("the operator has not checked the current state of this host yet. %s See: kubectl windows diagnose %s",
		cmp.Or(instance.Status.NextAction, "The operator checks the host as soon as possible."), instance.Name)
}

func (f Forecaster) fillForecast(ctx context.Context, stay *hostsession.Session, s *scope.Scope, made *Forecast) error {
	if s.Instance.Status.Host == nil {
		return errNotInspected(s.Instance)
	}
	inCluster := nodes.Machines{Live: f.Reader}
	node, err := nodes.Nodes{Client: f.Reader, Live: f.Reader, Machines: inCluster, Namespace: f.Namespace}.Get(ctx, s.Instance)
	if err != nil {
		return err
	}
	spec, err := f.Specs.Build(s, node)
	if err != nil {
		return err
	}
	if stay != nil {
		err = f.requestPlan(ctx, stay, spec, made)
	} else {
		if stay, err = f.beginSession(ctx, inCluster, s); err != nil {
			return err
		}
		err = errors.Join(f.requestPlan(ctx, stay, spec, made), stay.Finish(ctx))
	}
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		if errors.Is(err, hostsession.ErrUnprotected) {
			return errNotInspected(s.Instance)
		}
		return errorFromResult(hostjobs.ResultFromError(v1alpha1.ConditionReachable, err))
	}
	f.recordRefusal(s, node, made)
	if node == nil || !s.WasActivated(node) {
		return nil // a node without pods is not drained
	}
	if f.isReplaced(s, node, spec, made) {
		return nil
	}
	addRequestedRestart(node, made)
	return f.addPods(ctx, inCluster, s, node, made)
}

// beginSession begins a separate visit.
func (f Forecaster) beginSession(ctx context.Context, inCluster nodes.Machines, s *scope.Scope) (*hostsession.Session, error) {
	machine, err := inCluster.Get(ctx, s.Instance)
	if err != nil {
		return nil, fmt.Errorf("read the expected host key from the Machine: %w", err)
	}
	announced := ""
	if machine != nil {
		announced = machine.Annotations[v1alpha1.AnnotationExpectedHostKey]
	}
	target, o := hostjobs.TargetOf(s.Instance, s.Key, s.Cluster, announced)
	if o != nil {
		return nil, errorFromResult(o)
	}
	stay, err := f.Connector.Connect(ctx, target)
	if err != nil {
		return nil, errorFromResult(hostjobs.ResultFromConnectError(err))
	}
	return stay, nil
}

// isReplaced reports whether the Machine of a node is deleted instead of any step: another version of the operator
// has configured the node, and its configuration must change. isReplaced records the replacement in the forecast.
func (f Forecaster) isReplaced(s *scope.Scope, node *corev1.Node, spec nodespec.NodeSpec, made *Forecast) bool {
	applied, disruptor := s.Instance.Status.SpecDigest, &drain.Disruptor{Version: f.Specs.Version, Specs: f.Specs}
	changes := applied != "" && applied != spec.Digest() && disruptor.NeedsReplacement(s, node)
	disrupts := slices.ContainsFunc(made.Steps, func(step Step) bool { return step.DisruptsPods || step.Restarts })
	if !changes && (!disrupts || !disruptor.IsReplacedByUpgrade(s, node)) {
		return false
	}
	when := " is deleted and replaced when the WindowsDisruptionPolicy allows it."
	if made.HeldBack != "" {
		when = " is deleted and replaced when a new host would be supported and the WindowsDisruptionPolicy allows it."
	}
	*made = Forecast{Instance: made.Instance, Address: made.Address, Node: made.Node, Steps: []Step{}, Replaced: true,
		HeldBack: made.HeldBack, Notes: append(made.Notes, "Machine "+nodes.MachineName(s.Instance.Spec.Source)+when)}
	return true
}

// errorFromResult returns an error with the message and the next action of a result.
func errorFromResult(o *result.Result) error {
	return errors.New(sanitize.Sentence(o.Message) + " " + o.NextAction)
}

// requestPlan requests the plan of the agent.
func (f Forecaster) requestPlan(ctx context.Context, stay *hostsession.Session, spec nodespec.NodeSpec, made *Forecast) error {
	if err := stay.EnsureAgent(ctx, true); err != nil {
		return err
	}
	planned, err := stay.Plan(ctx, spec)
	if err != nil {
		return err
	}
	for _, step := range planned.Plan.Steps {
		made.Steps = append(made.Steps, Step{
			Name: sanitize.Plain(step.Name, maxFactLength), Reason: sanitize.Plain(step.Reason, result.MaxMessageLength),
			DisruptsPods: step.DisruptsPods, Restarts: step.Reboots,
		})
	}
	for _, need := range planned.Plan.Needs {
		made.Needs = append(made.Needs, nodespec.Need(sanitize.Plain(string(need), maxFactLength)))
	}
	var present map[string]string
	if planned.Facts != nil {
		present = planned.Facts.Payload
	}
	sent := hostjobs.DigestsToSend(spec, present, f.Specs.Payload)
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

// maxFactLength is the maximum length of a name reported by a host, in bytes.
const maxFactLength = 256

// addRequestedRestart adds the restart that the Node requests by an annotation, unless the plan contains a restart.
func addRequestedRestart(node *corev1.Node, made *Forecast) {
	if !nodes.IsRebootRequested(node) {
		return
	}
	for _, step := range made.Steps {
		if step.Restarts {
			return
		}
	}
	made.Steps = append(made.Steps, Step{
		Name: plan.Name(plan.Reboot{}), Reason: "the annotation " + v1alpha1.AnnotationRebootRequired + " of the Node requests it",
		DisruptsPods: true, Restarts: true,
	})
}

// addPods adds the pods to evict.
func (f Forecaster) addPods(ctx context.Context, inCluster nodes.Machines, s *scope.Scope, node *corev1.Node, made *Forecast) error {
	for _, step := range made.Steps {
		made.Drains = made.Drains || step.DisruptsPods || step.Restarts
	}
	if !made.Drains {
		return nil
	}
	machine, err := inCluster.Get(ctx, s.Instance)
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
