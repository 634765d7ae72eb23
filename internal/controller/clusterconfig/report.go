package clusterconfig

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/controller/metrics"
	"github.com/windows-machine-config/wmco/internal/controller/operatorcondition"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// +kubebuilder:rbac:groups=apps,namespace=system,resources=deployments,resourceNames=windows-machine-config-operator,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,namespace=system,resources=events,verbs=create;patch

// supportState is whether the operator can serve the cluster, with the reason.
type supportState struct {
	supported bool
	// untested is true if the cluster is newer than the versions that the operator was tested with.
	untested        bool
	reason, message string
}

// evaluateSupport returns the support state for the facts or the error of Source.
func (r *Reporter) evaluateSupport(facts nodespec.Cluster, err error) supportState {
	if err != nil {
		return supportState{reason: v1alpha1.ReasonClusterConfigurationInvalid,
			message: "The cluster's configuration cannot be used: " + err.Error()}
	}
	decision := r.line.SupportCluster(facts)
	if advice := r.line.UntestedAdvice(facts.Version); decision.Allowed && advice != "" {
		return supportState{supported: true, untested: true, reason: v1alpha1.ReasonClusterVersionUntested, message: advice}
	}
	if decision.Allowed {
		return supportState{supported: true, reason: v1alpha1.ReasonSucceeded, message: decision.Message}
	}
	return supportState{reason: decision.Reason, message: decision.Message}
}

// Reporter reports the settings of the cluster that Windows nodes do not follow, and whether the operator can serve
// the cluster: by an event on the operator's Deployment, a metric, and the condition ClusterSupported for OLM. The
// state is passed repeatedly, but no event is repeated while the reason is unchanged. Reporter is not safe for
// concurrent use.
type Reporter struct {
	live       client.Reader
	events     events.EventRecorder
	conditions *operatorcondition.Writer
	namespace  string
	line       support.ReleaseLine

	reported recorder.OperatorState
	// settings are the unsupported settings that were reported.
	settings recorder.Once[cluster.Notice]
}

// NewReporter returns a reporter. live reads the API server directly; namespace and line are the namespace and the
// release line of the operator.
func NewReporter(
	live client.Reader, events events.EventRecorder, conditions *operatorcondition.Writer, namespace string,
	line support.ReleaseLine,
) *Reporter {
	return &Reporter{live: live, events: events, conditions: conditions, namespace: namespace, line: line}
}

func (r *Reporter) reportSupport(ctx context.Context, s supportState) error {
	metrics.ClusterSupported.Set(s.supported, s.reason)
	err := r.reported.Emit(ctx, r.live, r.namespace, r.events, s.reason, s.supported && !s.untested, func(operator *appsv1.Deployment) recorder.Event {
		switch {
		case s.untested:
			return recorder.Warning(operator, nil, v1alpha1.ReasonClusterVersionUntested, "CheckCluster", s.message)
		case s.supported:
			return recorder.Normal(operator, nil, operatorcondition.ClusterSupported, "CheckCluster", s.message)
		}
		return recorder.Warning(operator, nil, s.reason, "CheckCluster",
			s.message+" Until this is corrected, the operator configures no hosts; existing nodes are not changed.")
	})
	if err != nil {
		return err
	}
	status := metav1.ConditionFalse
	if s.supported {
		status = metav1.ConditionTrue
	}
	return r.conditions.Set(ctx, metav1.Condition{Type: operatorcondition.ClusterSupported, Status: status,
		Reason: s.reason, Message: s.message})
}
