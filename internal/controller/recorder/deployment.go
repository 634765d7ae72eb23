package recorder

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Deployment returns the operator's own Deployment, which events about the operator itself are about. Where something
// else runs the operator, they have its name all the same: people look for it.
func Deployment(ctx context.Context, live client.Reader, namespace, name string) *appsv1.Deployment {
	found := &appsv1.Deployment{}
	if err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found); err != nil {
		return &appsv1.Deployment{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		}
	}
	return found
}
