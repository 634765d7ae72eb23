package csr

import (
	"context"
	"fmt"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// newCountingFixture returns a controller that counts its requests to the API server.
func newCountingFixture(t *testing.T, objects ...client.Object) (*fixture, *countingReader) {
	t.Helper()
	f := newFixture(t, objects...)
	counted := &countingReader{Reader: f.api}
	f.Live = counted
	return f, counted
}

// createAndReconcile creates a request and reconciles it immediately.
func (f *fixture) createAndReconcile(t *testing.T, number int, node string, names []string, addresses ...string) time.Duration {
	t.Helper()
	csr := newServingRequest(t, node, names, addresses...)
	csr.Name = fmt.Sprintf("csr-%03d", number)
	csr.CreationTimestamp = metav1.NewTime(f.clock.Now().Truncate(time.Second))
	if err := f.api.Create(t.Context(), csr.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if err := f.clientset.Tracker().Add(csr); err != nil {
		t.Fatal(err)
	}
	return f.reconcileRequest(t, csr.Name).RequeueAfter
}

func TestReconcile_CostOfManyRequestsIsBounded(t *testing.T) {
	t.Run("200 of one node that are refused as they come", func(t *testing.T) {
		f, counted := newCountingFixture(t, newMachineInstance(), newRegisteredNode())
		var wait []int
		for i := range 200 {
			if f.createAndReconcile(t, i, winNode, []string{"api-int.lab.example.com"}) > 0 {
				wait = append(wait, i)
			}
		}
		if counted.lists > 2 || counted.gets > maxTrackedRequests {
			t.Errorf("they cost %d lists and %d reads of the Node", counted.lists, counted.gets)
		}
		if events := f.drainEvents(); len(events) != maxTrackedRequests {
			t.Errorf("%d events", len(events))
		}
		f.clock.Step(refusalWindow)
		counted.lists = 0
		var again []int
		for _, i := range wait {
			if f.reconcileRequest(t, fmt.Sprintf("csr-%03d", i)).RequeueAfter > 0 {
				again = append(again, i)
			}
		}
		if counted.lists > 2 || len(again) != maxTrackedRequests || again[0] != 200-maxTrackedRequests {
			t.Errorf("at the next look they cost %d lists; those that a kubelet may wait for are %v", counted.lists, again)
		}
	})
	t.Run("50 of as many nodes that are approved", func(t *testing.T) {
		var objects []client.Object
		names := make([]string, 50)
		for i := range names {
			names[i] = fmt.Sprintf("win-%d", i)
			one, node := newMachineInstance(), namedNode(names[i])
			node.Labels[corev1.LabelOSStable] = "windows"
			one.Name, one.Spec.Source.Machine.Name, one.Spec.Address = names[i], names[i], fmt.Sprintf("10.0.129.%d", i+1)
			one.Status.NodeRef.Name = names[i]
			one.Status.Host = &v1alpha1.HostStatus{Name: names[i], Addresses: []string{one.Spec.Address}}
			objects = append(objects, one, node)
		}
		f, counted := newCountingFixture(t, objects...)
		for i, name := range names {
			f.createAndReconcile(t, i, name, []string{name}, fmt.Sprintf("10.0.129.%d", i+1))
			if len(f.conditionTypes(t, fmt.Sprintf("csr-%03d", i))) != 1 {
				t.Errorf("the request of %s is not approved: %q", name, f.drainEvents())
			}
		}
		if counted.lists > 2 {
			t.Errorf("they cost %d lists", counted.lists)
		}
	})
	t.Run("a request reads no requests of other nodes", func(t *testing.T) {
		f, _ := newCountingFixture(t, newMachineInstance(), newRegisteredNode())
		for i := range 50 {
			csr := newServingRequest(t, fmt.Sprintf("win-%d", i), nil)
			csr.Name = fmt.Sprintf("other-%d", i)
			if err := f.api.Create(t.Context(), csr); err != nil {
				t.Fatal(err)
			}
		}
		read := 0
		f.Client = interceptor.NewClient(f.watched, interceptor.Funcs{List: func(ctx context.Context, api client.WithWatch,
			list client.ObjectList, options ...client.ListOption) error {
			err := api.List(ctx, list, options...)
			if requests, ok := list.(*certificatesv1.CertificateSigningRequestList); ok {
				read += len(requests.Items)
			}
			return err
		}})
		f.createAndReconcile(t, 0, winNode, []string{winNode}, privateIP)
		if f.pendingRequests(t.Context(), winNode); read != 2 {
			t.Errorf("%d requests were read, want that of the node, twice", read)
		}
	})
	t.Run("refusals of former nodes are forgotten", func(t *testing.T) {
		var m requestTracker
		for i := range 100 {
			m.countRefusal(fmt.Sprintf("win-%d", i), time.Unix(0, 0).Add(time.Duration(i)*refusalWindow))
		}
		if len(m.refusalsByNode) != 1 {
			t.Errorf("%d are kept", len(m.refusalsByNode))
		}
	})
	t.Run("one whose Machine gets its name a moment later is not refused for what was read before", func(t *testing.T) {
		f, _ := newCountingFixture(t, newMachineInstance(), newRegisteredNode())
		f.createAndReconcile(t, 0, winNode, []string{winNode}, privateIP) // the cluster is read
		if err := f.api.Create(t.Context(), newMachine()); err != nil {
			t.Fatal(err)
		}
		f.clock.Step(time.Second)
		wait := f.createAndReconcile(t, 1, winNode, []string{winNode, cloudName}, privateIP)
		if events := f.drainEvents(); wait != clusterReadTTL-time.Second || len(events) > 0 {
			t.Errorf("it is looked at again after %s, events are %q", wait, events)
		}
		f.clock.Step(wait)
		if f.reconcileRequest(t, "csr-001"); len(f.conditionTypes(t, "csr-001")) != 1 {
			t.Errorf("it is not approved: %q", f.drainEvents())
		}
	})
}
