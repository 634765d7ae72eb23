package drain

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// newRefusingDrainer returns a Drainer for the pods of one node, with some evictions refused by the API server.
func newRefusingDrainer(refusals map[string]error) Drainer {
	var pods []runtime.Object
	for name := range refusals {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec: corev1.PodSpec{NodeName: "win-1"}})
	}
	clientset := fake.NewClientset(pods...)
	clientset.Resources = []*metav1.APIResourceList{
		{GroupVersion: policyv1.SchemeGroupVersion.String()},
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods/eviction", Kind: "Eviction", Group: "policy", Version: "v1"}}},
	}
	clientset.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create, ok := action.(clienttesting.CreateAction)
		if !ok || action.GetSubresource() != "eviction" {
			return false, nil, nil
		}
		eviction, _ := create.GetObject().(*policyv1.Eviction)
		return true, nil, refusals[eviction.Name]
	})
	return Drainer{Clientset: clientset}
}

func TestPreview_RefusedEvictionHasReason(t *testing.T) {
	refusals := map[string]error{
		"goes":    nil,
		"budgets": apierrors.NewInternalError(errors.New("this pod has more than one PodDisruptionBudget")),
		"webhook": &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest,
			Message: "the webhook does not support \x1b[31mdry run"}},
		"denied": apierrors.NewForbidden(corev1.Resource("pods"), "denied", errors.New("denied by policy")),
		"busy":   apierrors.NewTooManyRequests("not\nnow", 1),
	}
	messages := map[string]string{"goes": "", "budgets": "more than one PodDisruptionBudget", "webhook": "does not support", "denied": "denied by policy",
		"busy": "not now"}
	evictions, err := newRefusingDrainer(refusals).Preview(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-1"}})
	if err != nil || len(evictions) != len(refusals) {
		t.Fatalf("%+v, %v", evictions, err)
	}
	for _, each := range evictions {
		if (each.Refused == "") != (refusals[each.Name] == nil) || !strings.Contains(each.Refused, messages[each.Name]) ||
			strings.ContainsAny(each.Refused, "\x1b\n") {
			t.Errorf("%s: %q", each.Name, each.Refused)
		}
	}
}

func TestPreview_InterruptionIsError(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	errGone := errors.New("gone")
	d := newRefusingDrainer(map[string]error{"web-1": errors.New("context canceled")})
	interrupt(errGone)
	if evictions, err := d.Preview(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-1"}}); !errors.Is(err, errGone) {
		t.Errorf("%+v, %v", evictions, err)
	}
}
