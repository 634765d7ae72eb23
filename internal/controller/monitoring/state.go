package monitoring

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/metrics"
	"github.com/windows-machine-config/wmco/internal/controller/operatorcondition"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// labelMonitoring is the label of the operator's namespace. The value "true" enables the cluster's Prometheus
// to read monitors there.
const labelMonitoring = "openshift.io/cluster-monitoring"

// Reasons of the events, and of the condition NodesMonitored.
const (
	reasonEnabled     = "MonitoringEnabled"
	reasonDisabled    = "MonitoringDisabled"
	reasonUnlabeled   = "NamespaceNotLabeled"
	reasonNotServed   = "MonitoringAPIMissing"
	reasonConflict    = "ObjectConflict"
	reasonUnreachable = "NodeNotMonitored"
)

const action = "Monitor" // of the events

// monitoringState states whether Windows nodes are monitored, and the reason.
type monitoringState struct {
	enabled         bool
	reason, message string
}

func enabledState() monitoringState {
	return monitoringState{true, reasonEnabled, "The cluster's Prometheus scrapes the exporters of Windows nodes."}
}

func unlabeledState(namespace string) monitoringState {
	return monitoringState{reason: reasonUnlabeled, message: "Namespace " + namespace + " does not have the label " +
		labelMonitoring + "=true, so the cluster's Prometheus does not scrape Windows nodes. To enable scraping: " +
		"oc label namespace " + namespace + " " + labelMonitoring + "=true"}
}

func apiMissingState() monitoringState {
	return monitoringState{reason: reasonNotServed, message: "The API server does not have the kinds ServiceMonitor and " +
		"PrometheusRule of " + serviceMonitorKind.Group + ", so no Prometheus is configured to scrape Windows nodes. " +
		"The operator creates the objects when the kinds exist."}
}

func conflictState(on bool, object fmt.Stringer) monitoringState {
	return monitoringState{on, reasonConflict, object.String() + " was not created by the operator and is not changed: it lacks the label " +
		v1alpha1.LabelManagedBy + "=" + v1alpha1.OperatorName + ". Delete or rename it, so that the operator can create its own."}
}

// reportState sets the metric and the condition for OLM, and emits an event after a change. A healthy initial state
// needs no event.
func (r *Reconciler) reportState(ctx context.Context, s monitoringState) error {
	metrics.MonitoringEnabled.Set(s.enabled, s.reason)
	err := r.reported.Emit(ctx, r.Live, r.Namespace, r.Events, s.reason+s.message, s == enabledState(), func(operator *appsv1.Deployment) recorder.Event {
		switch {
		case s == enabledState():
			return recorder.Normal(operator, nil, reasonEnabled, action, s.message)
		case s.enabled:
			return recorder.Warning(operator, nil, s.reason, action, s.message)
		}
		return recorder.Warning(operator, nil, reasonDisabled, action, s.message+" Nodes are not affected.")
	})
	if err != nil {
		return err
	}
	status := metav1.ConditionFalse
	if s.enabled {
		status = metav1.ConditionTrue
	}
	return r.Conditions.Set(ctx, metav1.Condition{Type: operatorcondition.NodesMonitored, Status: status,
		Reason: s.reason, Message: s.message})
}

// reportUnreachable reports each node in service without a usable address once, with the reason: on the Node,
// and on the WindowsInstance that has claimed the Node.
func (r *Reconciler) reportUnreachable(without []unreachable, instances []v1alpha1.WindowsInstance) {
	r.unreachable.Begin()
	defer r.unreachable.End()
	for _, u := range without {
		if !r.unreachable.IsNew(u.node.UID, u.message) {
			continue
		}
		message := "Node " + u.node.Name + " is not monitored: " + u.message + "."
		recorder.Emit(r.Events, recorder.Warning(u.node, nil, reasonUnreachable, action, message))
		for i := range instances {
			if nodeidentity.ConfirmedName(&instances[i]) == u.node.Name {
				recorder.Emit(r.Events, recorder.Warning(&instances[i], u.node, reasonUnreachable, action, message))
			}
		}
	}
}
