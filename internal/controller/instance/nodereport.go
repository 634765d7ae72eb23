package instance

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// +kubebuilder:rbac:groups=windowsmachineconfig.openshift.io,namespace=system,resources=windowsnodereports,verbs=get;list;watch;create;patch;delete

// A WindowsNodeReport is the agent's word for its host. It is made here, so that an agent needs no right to make one, and told as events.
// Nothing else rests on it.

// keepReport sees to it that the agent of a node has a report to write. Neither host nor node waits for it.
func (r *Reconciler) keepReport(ctx context.Context, s *scope) *obstacle {
	ref := s.instance.Status.NodeRef
	if ref == nil || !ref.Confirmed || ref.UID == "" {
		return nil
	}
	if err := s.makeReport(ctx, ref.Name); err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Info("the agent cannot report until the next look at its instance", "reason", err.Error())
	}
	return nil
}

// makeReport makes the report of a Node, or takes over that of a host which has come to this instance from another.
func (s *scope) makeReport(ctx context.Context, node string) error {
	report := &v1alpha1.WindowsNodeReport{}
	err := s.Client.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: node}, report)
	if apierrors.IsNotFound(err) {
		report = &v1alpha1.WindowsNodeReport{ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: node, Annotations: map[string]string{v1alpha1.AnnotationInstance: s.instance.Name},
		}}
		if err := s.Client.Create(ctx, report); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("make WindowsNodeReport %s: %w", node, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read WindowsNodeReport %s: %w", node, err)
	}
	if report.Annotations[v1alpha1.AnnotationInstance] == s.instance.Name {
		return nil
	}
	after := report.DeepCopy()
	setAll(&after.Annotations, map[string]string{v1alpha1.AnnotationInstance: s.instance.Name})
	if err := s.Client.Patch(ctx, after, client.MergeFrom(report)); err != nil {
		return fmt.Errorf("note whose WindowsNodeReport %s is: %w", node, err)
	}
	return nil
}

// forgetReport deletes the report of a node that was removed, unless it is another instance's by now.
func (r *Reconciler) forgetReport(ctx context.Context, s *scope) *obstacle {
	if s.handedOver || s.nodeName() == "" {
		return nil
	}
	report := &v1alpha1.WindowsNodeReport{}
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: s.nodeName()}, report)
	if err == nil && report.Annotations[v1alpha1.AnnotationInstance] == s.instance.Name {
		err = r.Client.Delete(ctx, report, client.Preconditions{UID: &report.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return apiObstacle(v1alpha1.ConditionReady, "delete the WindowsNodeReport of its node", err)
	}
	return nil
}

// reportWatch has a report that was deleted made again, and tells what is new in those that agents write.
func (r *Reconciler) reportWatch() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			before, ok := e.ObjectOld.(*v1alpha1.WindowsNodeReport)
			after, ok2 := e.ObjectNew.(*v1alpha1.WindowsNodeReport)
			if ok && ok2 {
				r.tellReport(ctx, before, after)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if name := e.Object.GetAnnotations()[v1alpha1.AnnotationInstance]; name != "" {
				queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: name}})
			}
		},
	}
}

// tellReport tells on the instance what an agent has reported. At most one event comes of one report, and the recorder joins those of one
// reason to a series, so that an agent in wrong hands cannot flood the API server by way of the operator.
func (r *Reconciler) tellReport(ctx context.Context, before, after *v1alpha1.WindowsNodeReport) {
	told := newsOf(before.Status, after.Status)
	if told == nil {
		return
	}
	instance := &v1alpha1.WindowsInstance{}
	key := types.NamespacedName{Namespace: r.Namespace, Name: after.Annotations[v1alpha1.AnnotationInstance]}
	if err := r.Client.Get(ctx, key, instance); err != nil || instance.Spec.DesiredState != v1alpha1.DesiredStateNode {
		return
	}
	r.emit(told(instance))
}

// newsOf is the event for what a report says that the one before it did not; nil for nothing. What the agent could not put back comes first.
func newsOf(before, after v1alpha1.WindowsNodeReportStatus) func(*v1alpha1.WindowsInstance) instanceEvent {
	drifted := after.State == v1alpha1.NodeReportDrifted
	if drifted && (before.State != after.State || before.Message != after.Message) && after.Message != "" {
		return func(i *v1alpha1.WindowsInstance) instanceEvent { return hostDrifted(i, after.Message) }
	}
	var repaired, left []string
	for _, drift := range after.Drift {
		if slices.ContainsFunc(before.Drift, func(known v1alpha1.NodeDrift) bool { return sameDrift(known, drift) }) {
			continue
		}
		told := drift.Step
		if drift.Reason != "" {
			told += " (" + drift.Reason + ")"
		}
		if drift.Repaired {
			repaired = append(repaired, told)
		} else {
			left = append(left, told)
		}
	}
	switch {
	case len(left) > 0:
		return func(i *v1alpha1.WindowsInstance) instanceEvent { return hostDrifted(i, strings.Join(left, "; ")) }
	case len(repaired) > 0:
		return func(i *v1alpha1.WindowsInstance) instanceEvent { return driftRepaired(i, repaired) }
	}
	return nil
}

func sameDrift(one, other v1alpha1.NodeDrift) bool {
	return one.Step == other.Step && one.Repaired == other.Repaired && one.Time.Equal(&other.Time)
}
