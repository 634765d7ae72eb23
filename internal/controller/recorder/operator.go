package recorder

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// Operator returns the Deployment as the subject of events about the operator. If no such Deployment exists,
// the returned object has the same name, because administrators search for it. The object returned with an
// error has this name as well.
func Operator(ctx context.Context, live client.Reader, namespace string) (*appsv1.Deployment, error) {
	named := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.OperatorName},
	}
	found := &appsv1.Deployment{}
	switch err := live.Get(ctx, client.ObjectKeyFromObject(named), found); {
	case err == nil:
		return found, nil
	case apierrors.IsNotFound(err):
		return named, nil
	default:
		return named, fmt.Errorf("read Deployment %s/%s of the operator for an event: %w", namespace,
			v1alpha1.OperatorName, err)
	}
}
