package machine_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A controller of controller-runtime starts only when all kinds in the manager's cache have been read, and the
// operator ends if this takes two minutes.
func TestController_UnreadableMachinesBlockNoController(t *testing.T) {
	var readable atomic.Bool
	s := newStageWith(t, func(api http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if !readable.Load() && strings.HasPrefix(r.URL.Path, "/apis/machine.openshift.io/v1beta1/") {
				return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Request: r}, nil
			}
			return api.RoundTrip(r)
		})
	})
	s.notices <- event.GenericEvent{Object: &corev1.ConfigMap{}}
	s.waitUntil("their own controller to start", func(context.Context) (bool, error) { return s.reconciles.Load() > 0, nil })

	var runs atomic.Int64
	err := ctrl.NewControllerManagedBy(s.mgr).Named("other").For(&corev1.ConfigMap{}).
		Complete(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			runs.Add(1)
			return reconcile.Result{}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	s.waitUntil("another controller to start", func(context.Context) (bool, error) { return runs.Load() > 0, nil })

	s.createMachine("win-late", machinev1beta1.PhaseProvisioned, "10.0.0.60", windowsLabels())
	readable.Store(true)
	s.awaitInstance("an instance once Machines can be read", "win-late", isNode)
}
