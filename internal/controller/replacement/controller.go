// Package replacement deletes Machines with hosts that are not changed in place, so that the MachineSets create
// successors. The reason is either a host that does not accept the SSH key, or another operator version.
package replacement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/disruption"
	"github.com/windows-machine-config/wmco/internal/controller/fleet"
	"github.com/windows-machine-config/wmco/internal/controller/metrics"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/controller/sshkeysecret"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
	replacementpolicy "github.com/windows-machine-config/wmco/internal/policy/replacement"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// Machines are in another namespace than the operator. Only a ClusterRole can grant access there.
// +kubebuilder:rbac:groups=machine.openshift.io,resources=machines,verbs=list;watch;delete
// +kubebuilder:rbac:groups=machine.openshift.io,resources=machinesets,verbs=list
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=windowsmachineconfig.openshift.io,namespace=system,resources=windowsinstances;windowsdisruptionpolicies,verbs=get;list;watch

const (
	// pollInterval is the interval between reads of the API server while Machines must be replaced. Watched changes
	// trigger earlier reads.
	pollInterval = 10 * time.Second
	// waitingPollInterval is the interval while all remaining Machines wait for an administrator or for a later time.
	waitingPollInterval = 5 * time.Minute
	// refusedInterval is the interval between two attempts while the API server refuses to delete a Machine.
	refusedInterval = time.Minute
)

// Reconciler replaces Machines. It runs one reconcile at a time, and disrupts a node only with a disruption slot.
type Reconciler struct {
	// Client reads the cache to detect whether there is anything to do, and deletes Machines.
	Client client.Client
	// Live reads the API server, because a Machine must be deleted based on current data.
	Live      client.Reader
	Namespace string
	// Version is the version of the operator.
	Version string
	// Line is the release line of the operator.
	Line support.ReleaseLine
	// Cluster returns the current facts of the cluster.
	Cluster func() (nodespec.Cluster, error)
	Gate    disruption.Gate
	Events  events.EventRecorder
	Clock   clock.PassiveClock

	// key and previous are the hashes of the public keys, and since is when this pair was first observed.
	key, previous string
	since         time.Time
	// reported contains the reports about Machines that wait or are not replaced.
	reported recorder.Once[types.UID]
}

// SetupWithManager registers the controller and makes it watch the Machines in a cache.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, machines cache.Cache) error {
	one := queue.Enqueue(ctrl.Request{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("replacement").
		Watches(&corev1.Secret{}, one, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			return o.GetNamespace() == r.Namespace && o.GetName() == sshkeysecret.SecretName
		}))).
		Watches(&corev1.Node{}, one, builder.WithPredicates(queue.Changed(func(n *corev1.Node) [2]any {
			return [2]any{fleetNode(n, n.Annotations[v1alpha1.AnnotationPubKeyHash]), n.Status.NodeInfo.KernelVersion}
		}))).
		Watches(&v1alpha1.WindowsInstance{}, one, builder.WithPredicates(queue.Changed(func(i *v1alpha1.WindowsInstance) [6]any {
			return [6]any{i.Spec.Paused, i.Status.SSHKeyRejected, needsReplacement(i, r.Version), i.Status.FailedChange != nil,
				ptr.Deref(i.Status.NodeRef, v1alpha1.NodeReference{}).Name, i.Status.PublicKeyHash}
		}))).
		Watches(&v1alpha1.WindowsDisruptionPolicy{}, one,
			builder.WithPredicates(queue.Changed(func(p *v1alpha1.WindowsDisruptionPolicy) string {
				return fmt.Sprintf("%d %v", p.Generation, p.Status.Disruptions)
			}))).
		WatchesRawSource(queue.OptionalKind(machines, &machinev1beta1.Machine{}, one,
			queue.Changed(func(m *machinev1beta1.Machine) replacementpolicy.Machine {
				return fleetMachine(m, nil, nil, r.Version)
			}))).
		WithOptions(queue.Options()).
		Complete(r)
}

// Reconcile deletes the Machines that acquire a disruption slot. If there is nothing to do, it sends no request to
// the API server.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	key, err := sshkeysecret.Read(ctx, r.Client, r.Namespace)
	if errors.Is(err, sshkeysecret.ErrMissing) || errors.Is(err, sshkeysecret.ErrInvalid) {
		// The problem is reported elsewhere. Without a usable key, no host can be changed and no new host
		// configured.
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if key.Hash() != r.key {
		r.key, r.since = key.Hash(), r.Clock.Now()
	}
	if outdated, err := r.hasOutdated(ctx); err != nil || !outdated {
		metrics.MachinesOutdated.Set(0)
		r.reported = recorder.Once[types.UID]{}
		return ctrl.Result{}, err
	}
	read, err := fleet.Read(ctx, r.Live, r.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	successors, known := r.readSuccessors()
	if !known {
		return ctrl.Result{RequeueAfter: pollInterval}, nil
	}
	overview := newOverview(read, r.Version, successors)
	if err := r.markSlots(ctx, overview); err != nil {
		return ctrl.Result{}, err
	}
	change, err := r.readKeyChange(ctx, key)
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.replaceNext(ctx, overview, replacementpolicy.Next(overview.policyFleet, r.Version, change))
}

// markSlots marks the Machines that hold a disruption slot for their replacement, from the cache: a stale cache affects
// only the order of the requests.
func (r *Reconciler) markSlots(ctx context.Context, overview overview) error {
	var disruptions v1alpha1.WindowsDisruptionPolicy
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: v1alpha1.DisruptionPolicyName}, &disruptions)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the WindowsDisruptionPolicy: %w", err)
	}
	for i := range overview.policyFleet.Machines {
		machine := &overview.policyFleet.Machines[i]
		instance := overview.instanceByMachine(machine.Name)
		machine.HasSlot = instance != nil && slices.ContainsFunc(disruptions.Status.Disruptions, func(d v1alpha1.Disruption) bool {
			return d.Machine == machine.Name && d.InstanceUID == instance.UID
		})
	}
	return nil
}

// hasOutdated reports, from the cache, whether the Node of a Machine has another key or another version that
// requires a replacement.
func (r *Reconciler) hasOutdated(ctx context.Context) (bool, error) {
	var instances v1alpha1.WindowsInstanceList
	if err := r.Client.List(ctx, &instances, client.InNamespace(r.Namespace),
		client.MatchingLabels{v1alpha1.LabelSource: v1alpha1.SourceMachine}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list WindowsInstances: %w", err)
	}
	for i := range instances.Items {
		instance := &instances.Items[i]
		reference, hash := instance.Status.NodeRef, instance.Status.PublicKeyHash
		otherKey := hash != "" && hash != r.key
		if reference == nil || !otherKey && !needsReplacement(instance, r.Version) {
			continue
		}
		node := &corev1.Node{}
		if err := r.Client.Get(ctx, types.NamespacedName{Name: reference.Name}, node); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return false, fmt.Errorf("read Node %s: %w", reference.Name, err)
		}
		if otherKey && node.Annotations[v1alpha1.AnnotationPubKeyHash] == hash {
			return true, nil
		}
		if version := node.Annotations[v1alpha1.AnnotationVersion]; needsReplacement(instance, r.Version) && version != "" &&
			version != r.Version {
			return true, nil
		}
	}
	return false, nil
}

// replaceNext deletes the Machines with nodes that may be disrupted now, and reports why the remaining Machines
// wait.
func (r *Reconciler) replaceNext(ctx context.Context, overview overview, plan replacementpolicy.Replacements) (ctrl.Result, error) {
	metrics.MachinesOutdated.Set(float64(len(plan.Candidates) + len(plan.Waiting)))
	report := r.newReporter(ctx, overview, plan)
	after, err := r.replaceAllowedMachines(ctx, overview, plan.Candidates, report)
	report.reportWaiting(plan.Waiting)
	report.reportNotReplaced(plan.NotReplaced)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case slices.ContainsFunc(plan.Waiting, func(w replacementpolicy.Waiting) bool { return !w.NeedsAdministrator() }):
		return ctrl.Result{RequeueAfter: pollInterval}, nil
	case len(plan.Candidates) > 0:
		return ctrl.Result{RequeueAfter: after}, nil
	case len(plan.NotReplaced)+len(plan.Waiting) > 0:
		return ctrl.Result{RequeueAfter: waitingPollInterval}, nil
	}
	return ctrl.Result{}, nil
}

// replaceAllowedMachines requests a disruption slot for each candidate, and deletes the allowed Machines, until a refusal
// applies to all candidates. After a refusal for one Machine of a MachineSet, the rest of the set is skipped, because
// the set can spare no further Machine. The result is the delay before the next requests.
func (r *Reconciler) replaceAllowedMachines(ctx context.Context, overview overview, candidates []replacementpolicy.Candidate, report *reporter) (time.Duration, error) {
	after, refused := waitingPollInterval, map[string]bool{}
	for _, candidate := range candidates {
		if refused[candidate.Set] {
			continue
		}
		decision, err := r.acquireSlot(ctx, overview, candidate)
		if err != nil {
			return 0, err
		}
		if decision.Reason == deletionRefused {
			refused[candidate.Set], after = true, min(after, refusedInterval)
			report.reportRefused(candidate, decision.Message)
			continue
		}
		if decision.Allowed {
			refusal, err := r.replaceMachine(ctx, overview, candidate)
			switch {
			case err != nil:
				return 0, err
			case refusal != "":
				refused[candidate.Set], after = true, min(after, refusedInterval)
				report.reportRefused(candidate, refusal)
			default:
				after = pollInterval
			}
			continue
		}
		refused[candidate.Set] = true
		report.reportPending(candidate, decision.Reason, decision.Message)
		switch {
		case !decision.IsIndependentOfNodes():
			after = min(after, pollInterval)
		case decision.After > 0:
			after = min(after, decision.After)
		}
		if decision.IsForAllNodes() {
			break
		}
	}
	return after, nil
}

// acquireSlot requests a disruption slot for one Machine. If the host may still accept the key, the operator may be
// changing the host in place; that change must finish first.
func (r *Reconciler) acquireSlot(ctx context.Context, overview overview, candidate replacementpolicy.Candidate) (disruptionpolicy.Decision, error) {
	instance := overview.instanceByMachine(candidate.Machine)
	changed, err := r.Gate.Holds(ctx, instance.Name)
	if err != nil {
		return disruptionpolicy.Decision{}, fmt.Errorf("check whether the host of Machine %s is being changed: %w",
			candidate.Machine, err)
	}
	if changed && candidate.Cause == v1alpha1.CauseKeyChange {
		return disruptionpolicy.Decision{Decision: policy.Decision{
			Reason: v1alpha1.ReasonDisruptionInProgress, Message: "Its node is being changed in place; that must finish first.",
		}}, nil
	}
	if machine := overview.machines[candidate.Machine]; r.reported.Last(machine.UID) == deletionRefused {
		if refusal, err := r.tryDeletion(ctx, machine); err != nil || refusal != "" {
			return disruptionpolicy.Decision{Decision: policy.Decision{Reason: deletionRefused, Message: refusal}}, err
		}
	}
	decision, err := r.Gate.Acquire(ctx, disruptionpolicy.Request{
		Instance: instance.Name, UID: instance.UID, Cause: candidate.Cause, Version: r.Version, Replaces: true,
	})
	if err != nil {
		return decision, fmt.Errorf("acquire a disruption slot for Machine %s: %w", candidate.Machine, err)
	}
	return decision, nil
}

// deletionRefused is the reason of a decision if the API server refuses to delete a Machine.
const deletionRefused = "DeletionRefused"

// tryDeletion returns the error of the API server if it still refuses to delete a Machine, as an admission webhook
// may; empty if not. The dry run precedes the announcement of another disruption of the node. A webhook with side
// effects prevents dry runs, but not the deletion.
func (r *Reconciler) tryDeletion(ctx context.Context, machine *machinev1beta1.Machine) (refusal string, err error) {
	err = r.Client.Delete(ctx, machine, client.DryRunAll, client.Preconditions{UID: &machine.UID, ResourceVersion: &machine.ResourceVersion})
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return "", nil
	case apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run"):
		return "", nil
	case wasNotDeleted(err):
		return err.Error(), nil
	}
	return "", fmt.Errorf("check whether Machine %s/%s can be deleted: %w", machine.Namespace, machine.Name, err)
}

// replaceMachine deletes a Machine, if it is unchanged since it was read. A Machine that was certainly not deleted
// does not count as disrupted, but a Machine with an unknown result does. replaceMachine returns the error of the API
// server if the deletion is refused.
func (r *Reconciler) replaceMachine(ctx context.Context, overview overview, candidate replacementpolicy.Candidate) (refusal string, err error) {
	machine, instance := overview.machines[candidate.Machine], overview.instanceByMachine(candidate.Machine)
	err = r.Client.Delete(ctx, machine, client.Preconditions{UID: &machine.UID, ResourceVersion: &machine.ResourceVersion})
	if err == nil {
		metrics.MachinesReplaced.Of(causeLabel(candidate.Cause)).Inc()
		log.FromContext(ctx).Info("replacing a Machine", "machine", machine.Name, "cause", candidate.Cause)
		for _, e := range r.machineReplaced(candidate.Cause, machine, instance, overview.configuredVersion(machine)) {
			recorder.Emit(r.Events, e)
		}
		return "", nil
	}
	if !wasNotDeleted(err) {
		return "", fmt.Errorf("delete Machine %s/%s: %w", machine.Namespace, machine.Name, err)
	}
	if err := r.Gate.Release(ctx, instance.Name); err != nil {
		return "", fmt.Errorf("record that Machine %s/%s was not deleted: %w", machine.Namespace, machine.Name, err)
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		log.FromContext(ctx).Info("a Machine changed before it could be replaced; checking it again", "machine", machine.Name)
		return "", nil
	}
	return err.Error(), nil
}

// wasNotDeleted reports whether the error of a deletion proves that the object was not deleted.
func wasNotDeleted(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsForbidden(err) ||
		apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}
