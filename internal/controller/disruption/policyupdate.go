package disruption

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/fleet"
	"github.com/windows-machine-config/wmco/internal/controller/metrics"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/policy"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// disruptionID identifies a disruption.
type disruptionID struct {
	uid   types.UID
	since int64
}

func idOf(d v1alpha1.Disruption) disruptionID { return disruptionID{d.InstanceUID, d.Since.Unix()} }

// policyUpdate is the WindowsDisruptionPolicy as read for one decision and as written afterwards. The API server
// refuses the write if the policy has changed since it was read.
type policyUpdate struct {
	gate     *PolicyGate
	policy   *v1alpha1.WindowsDisruptionPolicy
	settings disruptionpolicy.Settings
	now      time.Time
	// statusMissing is true if the status was never written, so that the current disruptions must be determined.
	statusMissing bool
	// state and summary are nil until the fleet was read.
	state   *fleetState
	summary *disruptionpolicy.Summary
	// previousStatus is the status as read, for detecting differences.
	previousStatus v1alpha1.WindowsDisruptionPolicyStatus
	// failed are the disruptions that missed the failure deadline, each with a reason.
	failed []failedDisruption
}

type failedDisruption struct {
	v1alpha1.Disruption
	why string
}

// beginUpdate reads the policy, or creates it.
func (g *PolicyGate) beginUpdate(ctx context.Context) (*policyUpdate, error) {
	object := &v1alpha1.WindowsDisruptionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace,
		Name: v1alpha1.DisruptionPolicyName}}
	err := g.Live.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		if err := g.Client.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("create WindowsDisruptionPolicy %s with its defaults: %w", object.Name, err)
		}
	} else if err != nil {
		return nil, fmt.Errorf("read WindowsDisruptionPolicy %s: %w", object.Name, err)
	}
	settings, _ := disruptionpolicy.Parse(object.Spec) // the settings include the violations
	return &policyUpdate{
		gate: g, policy: object, settings: settings, now: g.Clock.Now(), statusMissing: hasNoStatus(object),
		previousStatus: *object.Status.DeepCopy(),
	}, nil
}

func hasNoStatus(p *v1alpha1.WindowsDisruptionPolicy) bool { return p.Status.ObservedGeneration == 0 }

// activeDisruption returns the continuing disruption of an instance; nil if there is none.
func (b *policyUpdate) activeDisruption(request disruptionpolicy.Request) *v1alpha1.Disruption {
	for i := range b.policy.Status.Disruptions {
		d := &b.policy.Status.Disruptions[i]
		if d.InstanceUID == request.UID && b.now.Before(d.Since.Add(b.settings.FailureDeadline)) {
			return d
		}
	}
	return nil
}

// read reads all other data for a decision, and removes ended disruptions from the list. The first read of a
// process adopts the disruptions of former processes.
func (b *policyUpdate) read(ctx context.Context) error {
	status := &b.policy.Status
	read, err := fleet.Read(ctx, b.gate.Live, b.gate.Namespace)
	if err != nil {
		return err
	}
	b.state = newFleetState(read, b.settings, status.Disruptions)
	if b.statusMissing {
		status.Disruptions, status.ObservedNodes = b.restoreDisruptions(), b.gate.cache.lastStatus().ObservedNodes
		b.state = newFleetState(read, b.settings, status.Disruptions)
	}
	pool := &b.state.pool
	pool.Nodes, status.ObservedNodes = disruptionpolicy.Observe(*pool, status.ObservedNodes, !b.gate.initialized, b.settings, b.now)
	pool.Disruptions = slices.Clone(status.Disruptions)
	status.Disruptions = b.remainingDisruptions(*pool)
	pool.Disruptions = slices.Clone(status.Disruptions)
	return nil
}

// remainingDisruptions returns the disruptions that have not ended.
func (b *policyUpdate) remainingDisruptions(pool disruptionpolicy.NodePool) (left []v1alpha1.Disruption) {
	lingering := map[disruptionID]time.Time{}
	for _, d := range b.policy.Status.Disruptions {
		ended, failed, why := disruptionpolicy.Ended(d, pool, b.settings, b.now)
		if failed {
			b.failed = append(b.failed, failedDisruption{d, why})
		}
		if !b.gate.initialized {
			d.HolderIdentity = b.gate.Operator
		}
		if d.HolderIdentity != b.gate.Operator && disruptionpolicy.IsLingering(d, pool) {
			since, known := b.gate.lingering[idOf(d)]
			if !known {
				since = b.now
			}
			lingering[idOf(d)] = since
			ended = ended || disruptionpolicy.IsAbandoned(since, b.now)
		}
		if !ended {
			left = append(left, d)
		}
	}
	b.gate.lingering = lingering
	return left
}

// newDisruption returns the requested disruption, or the reason why there is nothing to disrupt.
func (b *policyUpdate) newDisruption(request disruptionpolicy.Request) (v1alpha1.Disruption, policy.Decision) {
	instance := b.state.Instance(request.Instance)
	if instance == nil || instance.UID != request.UID {
		return v1alpha1.Disruption{}, policy.Decision{
			Check: "InstanceRecreated", Reason: v1alpha1.ReasonWaiting, Message: "WindowsInstance " + request.Instance +
				" no longer exists, or was recreated.",
		}
	}
	if instance.Spec.Paused { // the caller has read an older, cached instance
		return v1alpha1.Disruption{}, policy.Decision{
			Check: "InstancePaused", Reason: v1alpha1.ReasonPaused, Message: "WindowsInstance " + request.Instance + " is paused.",
		}
	}
	entry := v1alpha1.Disruption{
		Instance: instance.Name, InstanceUID: instance.UID, Node: b.state.NodeName(instance), Pool: b.state.poolOf(instance, b.settings),
		Cause: request.Cause, Version: request.Version, ConfigurationDigest: disruptionpolicy.ConfigurationOf(request),
		Since: metav1.NewTime(b.now), HolderIdentity: b.gate.Operator,
	}
	if request.Replaces {
		machine := b.state.MachineOf(instance)
		if machine == nil || isDeleting(machine) {
			return v1alpha1.Disruption{}, machineDeleting(request.Instance)
		}
		entry.Machine = machine.Name
	}
	return entry, policy.Decision{}
}

func machineDeleting(instance string) policy.Decision {
	return policy.Decision{
		Check: "MachineDeleting", Reason: v1alpha1.ReasonMachineDeleting, Message: "The Machine of WindowsInstance " + instance +
			" no longer exists or is already being deleted.",
	}
}

// addDisruption adds a disruption to the list and replaces the earlier entry of the same instance.
func (b *policyUpdate) addDisruption(entry v1alpha1.Disruption) {
	list := slices.DeleteFunc(slices.Clone(b.policy.Status.Disruptions), func(d v1alpha1.Disruption) bool {
		return d.Instance == entry.Instance
	})
	b.policy.Status.Disruptions = append(list, entry)
}

// removeDisruption removes a disruption from the list.
func (b *policyUpdate) removeDisruption(entry v1alpha1.Disruption) {
	b.policy.Status.Disruptions = slices.DeleteFunc(slices.Clone(b.policy.Status.Disruptions),
		func(d v1alpha1.Disruption) bool {
			return d.Instance == entry.Instance
		})
}

// write writes the status if it has changed, and reports events.
func (b *policyUpdate) write(ctx context.Context) error {
	if b.state != nil {
		b.updateStatus()
	}
	if !reflect.DeepEqual(b.previousStatus, b.policy.Status) {
		if err := b.gate.Client.Status().Update(ctx, b.policy); err != nil {
			return fmt.Errorf("write the status of WindowsDisruptionPolicy %s: %w", b.policy.Name, err)
		}
	}
	b.gate.cache.storePolicy(b.policy)
	if b.state != nil {
		b.gate.initialized = true
		b.emitEvents()
	}
	return nil
}

// updateStatus updates the status from the fleet that was read.
func (b *policyUpdate) updateStatus() {
	pool := b.state.pool
	pool.Disruptions = b.policy.Status.Disruptions
	summary := disruptionpolicy.Summarize(pool, b.settings, b.gate.Version, b.gate.desiredConfiguration(), b.now)
	b.summary = &summary
	status := &b.policy.Status
	status.ObservedGeneration = b.policy.Generation
	status.Summary, status.Nodes, status.Updated, status.Failed = sanitize.Shorten(summary.Text, maxMessageLength),
		summary.Nodes, summary.Updated, summary.Failed

	valid := metav1.Condition{Type: v1alpha1.ConditionValid, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonSucceeded, Message: "The policy is valid."}
	if b.settings.Invalid != "" {
		valid.Status, valid.Reason = metav1.ConditionFalse, v1alpha1.ReasonDisruptionPolicyInvalid
		valid.Message = "Until the policy is corrected, nodes are disrupted only for repairs and for the removal of hosts: " +
			b.settings.Invalid
	}
	progressing := metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonSucceeded, Message: summary.Text}
	if len(status.Disruptions) > 0 || summary.Updated < summary.Nodes || summary.Behind > 0 {
		progressing.Status, progressing.Reason = metav1.ConditionTrue, v1alpha1.ReasonInProgress
	}
	stopped := metav1.Condition{
		Type: v1alpha1.ConditionStopped, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSucceeded,
		Message: "No action of an administrator is required.",
	}
	if summary.Stopped {
		stopped.Status, stopped.Reason, stopped.Message = metav1.ConditionTrue, summary.Reason, summary.Message
	}
	for _, condition := range []metav1.Condition{valid, progressing, stopped} {
		condition.Message = sanitize.Shorten(condition.Message, maxMessageLength)
		condition.ObservedGeneration, condition.LastTransitionTime = b.policy.Generation, metav1.NewTime(b.now)
		meta.SetStatusCondition(&status.Conditions, condition)
	}
}

// emitEvents emits each event for the administrator once.
func (b *policyUpdate) emitEvents() {
	g := b.gate
	g.failed.Begin()
	for _, failed := range b.failed {
		if !g.failed.IsNew(idOf(failed.Disruption), "") {
			continue
		}
		metrics.DisruptionsFailed.Of(string(failed.Cause)).Inc()
		for _, e := range disruptionFailed(b.policy, b.state.Instance(failed.Instance), failed) {
			recorder.Emit(g.Events, e)
		}
	}
	g.failed.End()
	for _, turned := range []struct {
		condition string
		to        metav1.ConditionStatus
		event     func(*v1alpha1.WindowsDisruptionPolicy, string) recorder.Event
	}{
		{v1alpha1.ConditionValid, metav1.ConditionFalse, policyInvalid},
		{v1alpha1.ConditionStopped, metav1.ConditionTrue, disruptionsStopped},
	} {
		now := meta.FindStatusCondition(b.policy.Status.Conditions, turned.condition)
		before := meta.FindStatusCondition(b.previousStatus.Conditions, turned.condition)
		if now.Status == turned.to && (before == nil || before.Status != now.Status || before.Reason != now.Reason ||
			before.Message != now.Message) {
			recorder.Emit(g.Events, turned.event(b.policy, now.Message))
		}
	}
}
