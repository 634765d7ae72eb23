package fleet

import (
	"context"
	"errors"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func TestRead_UnlistableMachinesAreNotAbsent(t *testing.T) {
	kind := schema.GroupKind{Group: machinev1beta1.GroupVersion.Group, Kind: "Machine"}
	unserved := &meta.NoKindMatchError{GroupKind: kind}
	// The response of an API server without a handler for the resource.
	notFound := apierrors.NewGenericServerResponse(404, "list", schema.GroupResource{Group: kind.Group, Resource: "machines"}, "", "404 page not found", 0, true)
	instanceOf := func(state v1alpha1.DesiredState, source v1alpha1.Source) *v1alpha1.WindowsInstance {
		return &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "wmco", Name: "win-1"},
			Spec: v1alpha1.WindowsInstanceSpec{DesiredState: state, Source: source}}
	}
	machine := v1alpha1.Source{Machine: &v1alpha1.MachineReference{Name: "win-1", UID: "machine"}}
	for name, c := range map[string]struct {
		answer   error
		instance *v1alpha1.WindowsInstance
		fails    bool
	}{
		"a cluster without the Machine API has none":                     {unserved, instanceOf(v1alpha1.DesiredStateNode, v1alpha1.Source{ConfigMapKey: "a"}), false},
		"nor has one whose last instance of a Machine is removed":        {unserved, instanceOf(v1alpha1.DesiredStateRemoved, machine), false},
		"an instance of a Machine contradicts discovery":                 {unserved, instanceOf(v1alpha1.DesiredStateNode, machine), true},
		"an API server that does not serve them at the moment may":       {notFound, instanceOf(v1alpha1.DesiredStateNode, v1alpha1.Source{ConfigMapKey: "a"}), true},
		"so may one that does not serve them and has an instance of one": {notFound, instanceOf(v1alpha1.DesiredStateNode, machine), true},
		"another error is returned":                                      {errors.New("busy"), instanceOf(v1alpha1.DesiredStateNode, machine), true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), machinev1beta1.Install(scheme)); err != nil {
				t.Fatal(err)
			}
			live := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.instance).Build(), interceptor.Funcs{
				List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					switch list.(type) {
					case *machinev1beta1.MachineList, *machinev1beta1.MachineSetList:
						return c.answer
					}
					return api.List(ctx, list, options...)
				},
			})
			if read, err := Read(t.Context(), live, "wmco"); (err != nil) != c.fails {
				t.Errorf("%+v, %v", read, err)
			}
		})
	}
}
