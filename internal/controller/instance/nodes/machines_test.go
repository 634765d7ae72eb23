package nodes

import (
	"context"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// answer is an API server that always returns the same error.
type answer struct {
	client.Reader
	err error
}

func (a answer) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return a.err
}

func TestMachines_MissingOnlyIfAPIServesMachines(t *testing.T) {
	resource := schema.GroupResource{Group: machinev1beta1.GroupVersion.Group, Resource: "machines"}
	instance := &v1alpha1.WindowsInstance{}
	instance.Spec.Source.Machine = &v1alpha1.MachineReference{Name: "win-1"}
	for name, c := range map[string]struct {
		answer error
		fails  bool
	}{
		"an API server that does not have it":           {apierrors.NewNotFound(resource, "win-1"), false},
		"an API server that does not serve any Machine": {apierrors.NewGenericServerResponse(404, "get", resource, "win-1", "404 page not found", 0, true), true},
	} {
		t.Run(name, func(t *testing.T) {
			if machine, err := (Machines{Live: answer{err: c.answer}}).Get(t.Context(), instance); machine != nil || (err != nil) != c.fails {
				t.Errorf("%v, %v", machine, err)
			}
		})
	}
}
