package csr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/certrequest"
)

//
func TestServing_MachineHostGetsOwnNames(t *testing.T) {
	t.Run("with the host's own name and address are approved, whether or not the Machine can be read", func(t *testing.T) {
		if approved, events := decideRequest(t, newServingRequest(t, winNode, []string{winNode}, privateIP), newMachineInstance(), newRegisteredNode()); !approved {
			t.Errorf("it is refused: %q", events)
		}
	})
	t.Run("with a name that the cloud has given the Machine are approved", func(t *testing.T) {
		if approved, events := decideRequest(t, newServingRequest(t, winNode, []string{winNode, cloudName}, privateIP), newMachineInstance(), newRegisteredNode(),
			newMachine()); !approved {
			t.Errorf("it is refused: %q", events)
		}
	})
	for name, c := range map[string]struct {
		names   []string
		objects func() []client.Object
	}{
		"with a name that neither host nor cloud knows": {
			[]string{winNode, "api-int.lab.example.com"}, func() []client.Object {
				return []client.Object{newMachineInstance(), newRegisteredNode(), newMachine()}
			}},
		"with the cloud's name when the Machine is gone": {
			[]string{winNode, cloudName}, func() []client.Object { return []client.Object{newMachineInstance(), newRegisteredNode()} }},
		"with the cloud's name of another Machine that has the name now": {
			[]string{winNode, cloudName}, func() []client.Object {
				another := newMachine()
				another.UID = "another-uid"
				return []client.Object{newMachineInstance(), newRegisteredNode(), another}
			}},
		"with a name that another node has as well": {
			[]string{winNode, cloudName}, func() []client.Object {
				other := namedNode("master-0", corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: cloudName})
				return []client.Object{newMachineInstance(), newRegisteredNode(), newMachine(), other}
			}},
	} {
		t.Run(name+" are left pending, with an event", func(t *testing.T) {
			approved, events := decideRequest(t, newServingRequest(t, winNode, c.names, privateIP), c.objects()...)
			if approved || len(events) != 1 || !strings.Contains(events[0], "ServingCertificateNotApproved") {
				t.Errorf("approved is %t, events are %q", approved, events)
			}
		})
	}
	t.Run("of a Machine that is being deleted are approved as before: its pods have logs still", func(t *testing.T) {
		leaving := newMachineInstance()
		leaving.Spec.DesiredState, leaving.Spec.DesiredStateReason = v1alpha1.DesiredStateUnmanaged,
			v1alpha1.ReasonMachineDeleting
		if approved, events := decideRequest(t, newServingRequest(t, winNode, []string{winNode}, privateIP), leaving, newRegisteredNode()); !approved {
			t.Errorf("it is refused: %q", events)
		}
	})
	t.Run("of a Machine that is gone are nobody's", func(t *testing.T) {
		removed := newMachineInstance()
		removed.Spec.DesiredState = v1alpha1.DesiredStateRemoved
		if approved, _ := decideRequest(t, newServingRequest(t, winNode, []string{winNode}, privateIP), removed, newRegisteredNode()); approved {
			t.Error("it is approved")
		}
	})
}

func TestReconcile_RefusalReportedOnce(t *testing.T) {
	csr := newServingRequest(t, winNode, []string{winNode, "api-int.lab.example.com"}, privateIP)
	f := newFixture(t, newMachineInstance(), newRegisteredNode(), csr)
	for range 2 {
		if result := f.reconcileRequest(t, csr.Name); result.RequeueAfter != refusedRecheckInterval {
			t.Errorf("it is looked at again after %s", result.RequeueAfter)
		}
	}
	if events := f.drainEvents(); len(events) != 1 {
		t.Errorf("after two looks it has said %q", events)
	}
	if err := f.api.Delete(t.Context(), csr); err != nil {
		t.Fatal(err)
	}
	f.reconcileRequest(t, csr.Name)
	if len(f.tracker.reportsByRequest)+len(f.tracker.firstSeenByRequest) > 0 {
		t.Errorf("of a request that is gone it remembers %v, %v", f.tracker.reportsByRequest, f.tracker.firstSeenByRequest)
	}
}

// A compromised node can create any number of requests. The operator must not emit as many events, or read the
// cluster for each request every minute.
func TestReconcile_RequestFloodIsLimited(t *testing.T) {
	objects := []client.Object{newMachineInstance(), newRegisteredNode()}
	created := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for i := range 5 * maxTrackedRequests {
		csr := newServingRequest(t, winNode, []string{"api-int.lab.example.com"})
		csr.Name, csr.CreationTimestamp = fmt.Sprintf("csr-%d", i), metav1.NewTime(created.Add(time.Duration(i/2)*time.Second))
		objects = append(objects, csr)
	}
	f := newFixture(t, objects...)
	counted := &countingReader{Reader: f.api}
	f.Live = counted
	var again []int
	for range 2 {
		f.clock.Step(refusedRecheckInterval)
		again, counted.lists = nil, 0
		for i := range 5 * maxTrackedRequests {
			if f.reconcileRequest(t, fmt.Sprintf("csr-%d", i)).RequeueAfter > 0 {
				again = append(again, i)
			}
		}
	}
	if events := f.drainEvents(); len(events) != maxTrackedRequests {
		t.Errorf("%d events, and %d are enough", len(events), maxTrackedRequests)
	}
	if len(again) != maxTrackedRequests || again[0] != 4*maxTrackedRequests {
		t.Errorf("looked at again are %v; a kubelet waits for the newest", again)
	}
	if counted.lists != 2 { // Nodes and Machines
		t.Errorf("for them the cluster is read %d times", counted.lists)
	}
	f.clock.Step(refusalWindow)
	right := newServingRequest(t, winNode, []string{winNode}, privateIP)
	right.Name, right.CreationTimestamp = "right", metav1.NewTime(created.Add(time.Hour))
	if err := f.api.Create(t.Context(), right); err != nil {
		t.Fatal(err)
	}
	if _, err := f.clientset.CertificatesV1().CertificateSigningRequests().Create(t.Context(), right,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if f.reconcileRequest(t, "right"); len(f.conditionTypes(t, "right")) != 1 {
		t.Error("what it may have is not approved any more")
	}
}

//
func TestRenewal_ApprovedForOwnNodeOnly(t *testing.T) {
	t.Run("of a node of ours by itself for itself are approved", func(t *testing.T) {
		if approved, events := decideRequest(t, newRenewalRequest(t, "system:node:"+winNode, winNode), newMachineInstance(), newRegisteredNode()); !approved ||
			len(events) > 0 {
			t.Errorf("approved is %t, events are %q", approved, events)
		}
	})
	t.Run("that ask for more are left pending, with an event", func(t *testing.T) {
		csr := newRenewalRequest(t, "system:node:"+winNode, winNode)
		csr.Spec.Usages = append(csr.Spec.Usages, certificatesv1.UsageServerAuth)
		approved, events := decideRequest(t, csr, newMachineInstance(), newRegisteredNode())
		if approved || len(events) != 1 || !strings.Contains(events[0], "ClientCertificateNotApproved") {
			t.Errorf("approved is %t, events are %q", approved, events)
		}
	})
	for name, csr := range map[string]*certificatesv1.CertificateSigningRequest{
		"a first join with a bootstrap token": newRenewalRequest(t, "system:bootstrap:abcdef", winNode),
		"a first join with the installer's account": newRenewalRequest(t,
			"system:serviceaccount:openshift-machine-config-operator:node-bootstrapper", winNode),
		"a request that the operator has made itself": newRenewalRequest(t,
			"system:serviceaccount:wmco:windows-machine-config-operator", winNode),
		"a request for a node of ours by another": newRenewalRequest(t, "system:node:worker-0", winNode),
	} {
		t.Run(name+" is left alone", func(t *testing.T) {
			f := newFixture(t, newMachineInstance(), newRegisteredNode(), csr)
			f.reconcileRequest(t, csr.Name)
			if events, written := f.drainEvents(), f.listWrites(); len(events)+len(written)+len(f.conditionTypes(t, csr.Name)) > 0 {
				t.Errorf("events %q, writes %q", events, written)
			}
		})
	}
}

//
func TestReconcile_ForgedRequestDenied(t *testing.T) {
	for signer, csr := range map[string]*certificatesv1.CertificateSigningRequest{
		"serving":   newServingRequest(t, "master-0", []string{"master-0"}, "10.0.0.3"),
		"renewal":   newRenewalRequest(t, "system:node:"+winNode, "master-0"),
		"our other": newRenewalRequest(t, "system:node:"+winNode, "win-b"),
	} {
		t.Run(signer, func(t *testing.T) {
			csr.Spec.Username = "system:node:" + winNode
			f := newFixture(t, newMachineInstance(), newRegisteredNode(), namedNode("master-0"), namedNode("win-b"), csr)
			for range 2 {
				f.reconcileRequest(t, csr.Name)
			}
			if got := f.conditionTypes(t, csr.Name); !slices.Equal(got,
				[]certificatesv1.RequestConditionType{certificatesv1.CertificateDenied}) {
				t.Errorf("conditions are %v", got)
			}
			if events := f.drainEvents(); len(events) != 1 || !strings.Contains(events[0], "CertificateRequestForged") ||
				!strings.Contains(events[0], winNode) {
				t.Errorf("events are %q", events)
			}
		})
	}
	t.Run("but not in the name of a Node that there is not: a host may have been renamed", func(t *testing.T) {
		csr := newRenewalRequest(t, "system:node:"+winNode, "worker-9")
		f := newFixture(t, newMachineInstance(), newRegisteredNode(), csr)
		f.reconcileRequest(t, csr.Name)
		if got := f.conditionTypes(t, csr.Name); len(got) > 0 || len(f.drainEvents()) != 1 {
			t.Errorf("conditions are %v", got)
		}
	})
}

// The cluster approves renewals too, and often decides first.
func TestReconcile_ForeignDecisionNotChanged(t *testing.T) {
	requests := certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests")
	decidedElsewhere := func(f *fixture, t *testing.T) {
		t.Helper()
		present, err := f.clientset.Tracker().Get(requests, "", "csr-1")
		if err != nil {
			t.Fatal(err)
		}
		csr := present.(*certificatesv1.CertificateSigningRequest).DeepCopy()
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Reason: "AutoApproved"}}
		if err := f.clientset.Tracker().Update(requests, csr, ""); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("before it is looked at", func(t *testing.T) {
		f := newFixture(t, newMachineInstance(), newRegisteredNode(), newRenewalRequest(t, "system:node:"+winNode, winNode))
		decidedElsewhere(f, t)
		f.reconcileRequest(t, "csr-1")
		if writes := f.listWrites(); len(writes) > 0 {
			t.Errorf("it writes %q", writes)
		}
	})
	t.Run("while it is looked at", func(t *testing.T) {
		f := newFixture(t, newMachineInstance(), newRegisteredNode(), newRenewalRequest(t, "system:node:"+winNode, winNode))
		raced := false
		f.clientset.PrependReactor("update", "certificatesigningrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
			if raced {
				return false, nil, nil
			}
			raced = true
			decidedElsewhere(f, t)
			return true, nil, apierrors.NewConflict(certificatesv1.Resource("certificatesigningrequests"), "csr-1", errors.New("changed"))
		})
		f.reconcileRequest(t, "csr-1")
		if got := f.conditionTypes(t, "csr-1"); !raced || len(got) != 1 {
			t.Errorf("conditions are %v", got)
		}
	})
	t.Run("but a conflict about something else is tried again", func(t *testing.T) {
		f := newFixture(t, newMachineInstance(), newRegisteredNode(), newRenewalRequest(t, "system:node:"+winNode, winNode))
		raced := false
		f.clientset.PrependReactor("update", "certificatesigningrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
			before := raced
			raced = true
			return !before, nil, apierrors.NewConflict(certificatesv1.Resource("certificatesigningrequests"), "csr-1", errors.New("changed"))
		})
		request := ctrl.Request{NamespacedName: client.ObjectKey{Name: "csr-1"}}
		if _, err := f.Reconcile(t.Context(), request); err == nil || !strings.Contains(err.Error(), "csr-1 of Node win-a") {
			t.Errorf("error is %v", err)
		}
		if f.reconcileRequest(t, "csr-1"); len(f.conditionTypes(t, "csr-1")) != 1 {
			t.Error("it is not approved")
		}
	})
	t.Run("and another request of the same name is not written to", func(t *testing.T) {
		csr := newRenewalRequest(t, "system:node:"+winNode, winNode)
		f := newFixture(t, newMachineInstance(), newRegisteredNode(), csr)
		another := csr.DeepCopy()
		another.UID = "another"
		if err := f.clientset.Tracker().Update(requests, another, ""); err != nil {
			t.Fatal(err)
		}
		if f.reconcileRequest(t, csr.Name); len(f.listWrites()) > 0 {
			t.Errorf("it writes %q", f.listWrites())
		}
	})
}

// a foreign request causes no read and no write.
func TestReconcile_LinuxRequestsCauseNoAPICalls(t *testing.T) {
	objects, names := []client.Object{newMachineInstance(), newRegisteredNode()}, []string{}
	for i := range 50 {
		node := fmt.Sprintf("worker-%d", i)
		client, serving := newRenewalRequest(t, "system:node:"+node, node), newServingRequest(t, node, []string{node, winNode}, privateIP)
		client.Name, serving.Name = "client-"+node, "serving-"+node
		objects, names = append(objects, namedNode(node), client, serving), append(names, client.Name, serving.Name)
	}
	f := newFixture(t, objects...)
	f.Live = unusedReader{}
	for _, name := range names {
		if result := f.reconcileRequest(t, name); result.RequeueAfter > 0 {
			t.Errorf("%s is looked at again", name)
		}
	}
	if written, events := f.listWrites(), f.drainEvents(); len(written)+len(events) > 0 || len(f.clientset.Actions()) > 0 {
		t.Errorf("writes %q, events %q", written, events)
	}
}

// unusedReader is an API server that must not be called.
type unusedReader struct{ client.Reader }

func (unusedReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nobody was to ask")
}

// countingReader counts the get and list requests.
type countingReader struct {
	client.Reader
	lists int
	gets  int
}

func (c *countingReader) Get(ctx context.Context, key client.ObjectKey, into client.Object,
	options ...client.GetOption) error {
	c.gets++
	return c.Reader.Get(ctx, key, into, options...)
}

func (c *countingReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c.lists++
	return c.Reader.List(ctx, list, options...)
}

//
func TestReconcile_RequestWaitsForNode(t *testing.T) {
	csr := newServingRequest(t, winNode, []string{winNode}, privateIP)
	f := newFixture(t, newMachineInstance(), csr)
	counted := &countingReader{Reader: f.api}
	f.Live = counted
	if result := f.reconcileRequest(t, csr.Name); result.RequeueAfter > 0 || counted.lists > 0 {
		t.Errorf("it is looked at again after %s, and the cluster was read %d times", result.RequeueAfter, counted.lists)
	}
	if len(f.conditionTypes(t, csr.Name))+len(f.drainEvents()) > 0 {
		t.Fatal("it is decided on before the Node is there, or told")
	}
	if enqueued := f.pendingRequests(t.Context(), winNode); len(enqueued) != 1 || enqueued[0].Name != csr.Name {
		t.Fatalf("the Node wakes %v", enqueued)
	}
	if enqueued := f.pendingRequests(t.Context(), "worker-0"); len(enqueued) > 0 {
		t.Errorf("another Node wakes %v", enqueued)
	}
	if err := f.api.Create(t.Context(), newRegisteredNode()); err != nil {
		t.Fatal(err)
	}
	if f.reconcileRequest(t, csr.Name); len(f.conditionTypes(t, csr.Name)) != 1 {
		t.Error("it is not approved once the Node is there")
	}
}

func TestStripUnusedFields_KeepsFieldsForDecision(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	fill := func(csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
		csr.Annotations, csr.Labels = map[string]string{"a": large}, map[string]string{"b": large}
		csr.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: large}}
		csr.Spec.Extra = map[string]certificatesv1.ExtraValue{"c": {large}}
		csr.Status.Certificate = []byte(large)
		return csr
	}
	size := func(object any) int {
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return len(data)
	}
	kept := func(csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
		t.Helper()
		object, err := stripUnusedFields(fill(csr))
		if err != nil {
			t.Fatal(err)
		}
		return object.(*certificatesv1.CertificateSigningRequest)
	}
	t.Run("is what a pending one of a kubelet is judged by", func(t *testing.T) {
		csr := newServingRequest(t, winNode, []string{winNode}, privateIP)
		csr.CreationTimestamp, csr.UID, csr.Spec.ExpirationSeconds = metav1.Now(), "uid", new(int32(600))
		got := kept(csr.DeepCopy())
		if size(got) > 4096 || got.UID != csr.UID || !got.CreationTimestamp.Equal(&csr.CreationTimestamp) ||
			!reflect.DeepEqual(got.Spec, csr.Spec) {
			t.Errorf("it is %+v", got)
		}
		f := newFixture(t, newMachineInstance(), newRegisteredNode(), got)
		if f.reconcileRequest(t, csr.Name); len(f.conditionTypes(t, csr.Name)) != 1 {
			t.Error("by what is kept it is not approved")
		}
	})
	t.Run("is not more of one that is too large than that it is", func(t *testing.T) {
		csr := newServingRequest(t, winNode, nil)
		csr.Spec.Request = []byte(large)
		got := kept(csr)
		if len(got.Spec.Request) != certrequest.MaxRequestSize+1 || cap(got.Spec.Request) > 2*certrequest.MaxRequestSize {
			t.Errorf("%d bytes are kept of it", cap(got.Spec.Request))
		}
	})
	t.Run("is of others' hardly anything", func(t *testing.T) {
		decided := newServingRequest(t, winNode, nil)
		decided.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Message: large}}
		foreign := newServingRequest(t, winNode, nil)
		foreign.Spec.SignerName, foreign.Spec.Request = "example.com/signer", []byte(large)
		for _, csr := range []*certificatesv1.CertificateSigningRequest{decided, foreign} {
			name := csr.Spec.SignerName
			if got := kept(csr); size(got) > 1024 || got.Spec.SignerName != name || isUndecided(got) != (csr == foreign) {
				t.Errorf("%d bytes are kept of %+v", size(got), got)
			}
		}
	})
}
