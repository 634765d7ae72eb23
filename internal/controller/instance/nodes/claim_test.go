package nodes

import (
	"context"
	"errors"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
)

// All instances and Machines are listed in shared requests that take seconds. A certificate must not be
// signed based on a Node that was read before them.
func TestClaim_HasNodeRegisteredDuringLists(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme),
		machinev1beta1.Install(scheme)); err != nil {
		t.Fatal(err)
	}
	for name, last := range map[string]func(client.ObjectList) bool{
		"during the list of instances": func(list client.ObjectList) bool { _, is := list.(*v1alpha1.WindowsInstanceList); return is },
		"during the list of Machines":  func(list client.ObjectList) bool { _, is := list.(*machinev1beta1.MachineList); return is },
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					err := api.List(ctx, list, options...)
					if last(list) {
						err = errors.Join(err, api.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-7"}}))
					}
					return err
				},
			}).Build()
			n := Nodes{Client: api, Live: api, Listed: newLists[v1alpha1.WindowsInstance](), Clock: clock.RealClock{},
				Machines: Machines{Live: api, Listed: newLists[machinev1beta1.Machine]()}}
			claim, err := n.Claim(t.Context(), &scope.Scope{Instance: &v1alpha1.WindowsInstance{}, Stored: &v1alpha1.WindowsInstance{},
				Session: &scope.Session{}}, "win-7")
			if err != nil || claim.Node == nil {
				t.Errorf("the claim has no Node (%v)", err)
			}
		})
	}
}

func newLists[T any]() queue.Lists[T] {
	return queue.Lists[T]{Shared: &queue.SharedRead[[]T]{}, Clock: clock.RealClock{}, WaitTimeout: time.Minute}
}
