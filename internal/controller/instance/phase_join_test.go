package instance

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// liveLists counts the lists that are read from the API server.
type liveLists struct {
	client.Reader
	count int
}

func (l *liveLists) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	l.count++
	return l.Reader.List(ctx, list, options...)
}

// All hosts of a fleet that join at once would list all of the fleet each time that they look.
func TestToWaitForANodeListsNothing(t *testing.T) {
	x, _, _ := hostToJoin(t, "None")
	x.until("the kubelet's certificate", summarized(v1alpha1.ReasonNodeNotRegistered))
	lists := &liveLists{Reader: x.Live}
	x.Live = lists
	for range 3 {
		x.clock.Step(time.Second)
		if instance, _ := x.reconcile(); instance.Status.Summary != v1alpha1.ReasonNodeNotRegistered || lists.count > 0 {
			t.Fatalf("it is %s, after %d lists", instance.Status.Summary, lists.count)
		}
	}
}
