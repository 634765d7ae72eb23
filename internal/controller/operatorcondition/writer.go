// Package operatorcondition reports the operator's state to the Operator Lifecycle Manager (OLM). The package
// writes conditions to the OperatorCondition object that OLM creates for each installation. Without OLM, no
// such object exists.
package operatorcondition

import (
	"context"
	"errors"
	"fmt"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/controller/queue"
)

// +kubebuilder:rbac:groups=operators.coreos.com,namespace=system,resources=operatorconditions,verbs=get;update

// ClusterSupported is the condition that reports whether the operator can serve the cluster.
const ClusterSupported = "ClusterSupported"

// NodesMonitored is the condition that reports whether the operator has the cluster's Prometheus scrape Windows nodes.
const NodesMonitored = "NodesMonitored"

// NameVariable is the environment variable with the name of the object, set by OLM.
const NameVariable = "OPERATOR_CONDITION_NAME"

// AddToScheme registers the API type that a Writer needs.
func AddToScheme(scheme *runtime.Scheme) error { return operatorsv2.AddToScheme(scheme) }

// Writer writes the conditions of one OperatorCondition. Several controllers may use a Writer concurrently,
// each for its own types.
type Writer struct {
	client client.Writer
	live   client.Reader
	name   types.NamespacedName
}

// NewWriter returns a Writer. live reads the API server directly, not a cache. An empty name means that OLM did
// not install the operator; then nothing is written.
func NewWriter(c client.Writer, live client.Reader, namespace, name string) *Writer {
	return &Writer{client: c, live: live, name: types.NamespacedName{Namespace: namespace, Name: name}}
}

// Set adds the condition or replaces the condition of the same type; all other conditions stay. Set writes only
// changes, and keeps the time of the last transition while the status is unchanged.
func (w *Writer) Set(ctx context.Context, condition metav1.Condition) error {
	if w.name.Name == "" {
		return nil
	}
	if condition.Reason == "" {
		return errors.New("a condition without a reason cannot be written")
	}
	err := queue.Retry(retry.DefaultBackoff, apierrors.IsConflict, func() error {
		object := &operatorsv2.OperatorCondition{}
		if err := w.live.Get(ctx, w.name, object); err != nil {
			return err
		}
		// OLM reads spec.conditions, which the operator owns, and copies them into the status, which OLM owns.
		if !meta.SetStatusCondition(&object.Spec.Conditions, condition) {
			return nil
		}
		return w.client.Update(ctx, object)
	})
	if err != nil {
		return fmt.Errorf("write the condition %s to OperatorCondition %s, which the environment variable %s names: %w",
			condition.Type, w.name, NameVariable, err)
	}
	return nil
}
