package test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/rig"
)

type (
	metav1Condition = metav1.Condition
	reader          = client.Reader
)

// annotate sets one annotation, as kubectl annotate does.
func annotate(t *testing.T, r *rig.Rig, object client.Object, name, value string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+name+`":"`+value+`"}}}`))
	if err := r.Client.Patch(t.Context(), object, patch); err != nil {
		t.Fatal(err)
	}
}

// eventuallySummary waits until the instance of an address has the summary.
func eventuallySummary(t *testing.T, r *rig.Rig, address, summary string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	err := r.WaitFor(ctx, address+" to say "+summary, &v1alpha1.WindowsInstance{}, func(ctx context.Context, reader client.Reader) (bool, error) {
		var list v1alpha1.WindowsInstanceList
		if err := reader.List(ctx, &list); err != nil {
			return false, err
		}
		for _, instance := range list.Items {
			if instance.Spec.Address == address && instance.Status.Summary == summary {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		t.Log(err)
	}
	return err == nil
}
