package recorder

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func TestOperator_RefersToDeployment(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "wmco", Name: v1alpha1.OperatorName, UID: "one"}}
	t.Run("with its UID, by which it is described", func(t *testing.T) {
		got, err := Operator(t.Context(), fake.NewClientBuilder().WithObjects(deployment).Build(), "wmco")
		if err != nil || got.UID != "one" {
			t.Errorf("got %+v, error %v", got, err)
		}
	})
	t.Run("by name where something else runs the operator", func(t *testing.T) {
		got, err := Operator(t.Context(), fake.NewClientBuilder().Build(), "wmco")
		if err != nil || got.Name != v1alpha1.OperatorName || got.Namespace != "wmco" || got.Kind != "Deployment" {
			t.Errorf("got %+v, error %v", got, err)
		}
	})
	t.Run("by name, and with the error, where it cannot be read", func(t *testing.T) {
		away := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return errors.New("no answer")
			},
		}).Build()
		got, err := Operator(t.Context(), away, "wmco")
		if err == nil || !strings.Contains(err.Error(), "wmco/"+v1alpha1.OperatorName) || got == nil || got.Name != v1alpha1.OperatorName {
			t.Errorf("got %+v, error %v", got, err)
		}
	})
}
