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
func TestServingCertificatesOfHostsOfMachines(t *testing.T) {
	t.Run("with the host's own name and address are approved, whether or not the Machine can be read", func(t *testing.T) {
		if approved, told := decide(t, asked(t, winNode, []string{winNode}, privateIP), instance(), registered()); !approved {
			t.Errorf("it is refused: %q", told)
		}
	})
	t.Run("with a name that the cloud has given the Machine are approved", func(t *testing.T) {
		if approved, told := decide(t, asked(t, winNode, []string{winNode, cloudName}, privateIP), instance(), registered(),
			machine()); !approved {
			t.Errorf("it is refused: %q", told)
		}
	})
	for name, c := range map[string]struct {
		names   []string
		objects func() []client.Object
	}{
		"with a name that neither host nor cloud knows": {
			[]string{winNode, "api-int.lab.example.com"}, func() []client.Object {
				return []client.Object{instance(), registered(), machine()}
			}},
		"with the cloud's name when the Machine is gone": {
			[]string{winNode, cloudName}, func() []client.Object { return []client.Object{instance(), registered()} }},
		"with the cloud's name of another Machine that has the name now": {
			[]string{winNode, cloudName}, func() []client.Object {
				another := machine()
				another.UID = "another-uid"
				return []client.Object{instance(), registered(), another}
			}},
		"with a name that another node has as well": {
			[]string{winNode, cloudName}, func() []client.Object {
				other := namedNode("master-0", corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: cloudName})
				return []client.Object{instance(), registered(), machine(), other}
			}},
	} {
		t.Run(name+" are left pending, with an event", func(t *testing.T) {
			approved, told := decide(t, asked(t, winNode, c.names, privateIP), c.objects()...)
			if approved || len(told) != 1 || !strings.Contains(told[0], "ServingCertificateRefused") {
				t.Errorf("approved is %t, events are %q", approved, told)
			}
		})
	}
	t.Run("of a Machine that is being deleted are approved as before: its pods have logs still", func(t *testing.T) {
		leaving := instance()
		leaving.Spec.DesiredState, leaving.Spec.DesiredStateReason = v1alpha1.DesiredStateUnmanaged,
			v1alpha1.ReasonMachineDeleting
		if approved, told := decide(t, asked(t, winNode, []string{winNode}, privateIP), leaving, registered()); !approved {
			t.Errorf("it is refused: %q", told)
		}
	})
	t.Run("of a Machine that is gone are nobody's", func(t *testing.T) {
		gone := instance()
		gone.Spec.DesiredState = v1alpha1.DesiredStateRemoved
		if approved, _ := decide(t, asked(t, winNode, []string{winNode}, privateIP), gone, registered()); approved {
			t.Error("it is approved")
		}
	})
}

func TestARefusalIsToldOnce(t *testing.T) {
	csr := asked(t, winNode, []string{winNode, "api-int.lab.example.com"}, privateIP)
	f := newFixture(t, instance(), registered(), csr)
	for range 2 {
		if result := f.look(t, csr.Name); result.RequeueAfter != refusedRecheck {
			t.Errorf("it is looked at again after %s", result.RequeueAfter)
		}
	}
	if said := f.said(); len(said) != 1 {
		t.Errorf("after two looks it has said %q", said)
	}
	if err := f.api.Delete(t.Context(), csr); err != nil {
		t.Fatal(err)
	}
	f.look(t, csr.Name)
	if len(f.memory.told)+len(f.memory.seen) > 0 {
		t.Errorf("of a request that is gone it remembers %v, %v", f.memory.told, f.memory.seen)
	}
}

// A compromised node can create any number of requests. The operator must not emit as many events, or read the
// cluster for each request every minute.
func TestANodeThatAsksWithoutEndIsAnsweredAFewTimes(t *testing.T) {
	objects := []client.Object{instance(), registered()}
	made := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for i := range 5 * mostTold {
		csr := asked(t, winNode, []string{"api-int.lab.example.com"})
		csr.Name, csr.CreationTimestamp = fmt.Sprintf("csr-%d", i), metav1.NewTime(made.Add(time.Duration(i/2)*time.Second))
		objects = append(objects, csr)
	}
	f := newFixture(t, objects...)
	counted := &counting{Reader: f.api}
	f.Live = counted
	var again []int
	for range 2 {
		f.clock.Step(refusedRecheck)
		again, counted.lists = nil, 0
		for i := range 5 * mostTold {
			if f.look(t, fmt.Sprintf("csr-%d", i)).RequeueAfter > 0 {
				again = append(again, i)
			}
		}
	}
	if said := f.said(); len(said) != mostTold {
		t.Errorf("%d events, and %d are enough", len(said), mostTold)
	}
	if len(again) != mostTold || again[0] != 4*mostTold {
		t.Errorf("looked at again are %v; a kubelet waits for the newest", again)
	}
	if counted.lists != 2 { // Nodes and Machines
		t.Errorf("for them the cluster is read %d times", counted.lists)
	}
	f.clock.Step(refusalWindow)
	right := asked(t, winNode, []string{winNode}, privateIP)
	right.Name, right.CreationTimestamp = "right", metav1.NewTime(made.Add(time.Hour))
	if err := f.api.Create(t.Context(), right); err != nil {
		t.Fatal(err)
	}
	if _, err := f.clientset.CertificatesV1().CertificateSigningRequests().Create(t.Context(), right,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if f.look(t, "right"); len(f.conditions(t, "right")) != 1 {
		t.Error("what it may have is not approved any more")
	}
}

//
func TestRenewalsOfClientCertificates(t *testing.T) {
	t.Run("of a node of ours by itself for itself are approved", func(t *testing.T) {
		if approved, told := decide(t, renewed(t, "system:node:"+winNode, winNode), instance(), registered()); !approved ||
			len(told) > 0 {
			t.Errorf("approved is %t, events are %q", approved, told)
		}
	})
	t.Run("that ask for more are left pending, with an event", func(t *testing.T) {
		csr := renewed(t, "system:node:"+winNode, winNode)
		csr.Spec.Usages = append(csr.Spec.Usages, certificatesv1.UsageServerAuth)
		approved, told := decide(t, csr, instance(), registered())
		if approved || len(told) != 1 || !strings.Contains(told[0], "ClientCertificateRefused") {
			t.Errorf("approved is %t, events are %q", approved, told)
		}
	})
	for name, csr := range map[string]*certificatesv1.CertificateSigningRequest{
		"a first join with a bootstrap token": renewed(t, "system:bootstrap:abcdef", winNode),
		"a first join with the installer's account": renewed(t,
			"system:serviceaccount:openshift-machine-config-operator:node-bootstrapper", winNode),
		"a request that the operator has made itself": renewed(t,
			"system:serviceaccount:wmco:windows-machine-config-operator", winNode),
		"a request for a node of ours by another": renewed(t, "system:node:worker-0", winNode),
	} {
		t.Run(name+" is left alone", func(t *testing.T) {
			f := newFixture(t, instance(), registered(), csr)
			f.look(t, csr.Name)
			if said, written := f.said(), f.written(); len(said)+len(written)+len(f.conditions(t, csr.Name)) > 0 {
				t.Errorf("events %q, writes %q", said, written)
			}
		})
	}
}

//
func TestForgedRequestsAreDenied(t *testing.T) {
	for signer, csr := range map[string]*certificatesv1.CertificateSigningRequest{
		"serving":   asked(t, "master-0", []string{"master-0"}, "10.0.0.3"),
		"renewal":   renewed(t, "system:node:"+winNode, "master-0"),
		"our other": renewed(t, "system:node:"+winNode, "win-b"),
	} {
		t.Run(signer, func(t *testing.T) {
			csr.Spec.Username = "system:node:" + winNode
			f := newFixture(t, instance(), registered(), namedNode("master-0"), namedNode("win-b"), csr)
			for range 2 {
				f.look(t, csr.Name)
			}
			if got := f.conditions(t, csr.Name); !slices.Equal(got,
				[]certificatesv1.RequestConditionType{certificatesv1.CertificateDenied}) {
				t.Errorf("conditions are %v", got)
			}
			if said := f.said(); len(said) != 1 || !strings.Contains(said[0], "CertificateRequestForged") ||
				!strings.Contains(said[0], winNode) {
				t.Errorf("events are %q", said)
			}
		})
	}
	t.Run("but not in the name of a Node that there is not: a host may have been renamed", func(t *testing.T) {
		csr := renewed(t, "system:node:"+winNode, "worker-9")
		f := newFixture(t, instance(), registered(), csr)
		f.look(t, csr.Name)
		if got := f.conditions(t, csr.Name); len(got) > 0 || len(f.said()) != 1 {
			t.Errorf("conditions are %v", got)
		}
	})
}

// The cluster approves renewals too, and often decides first.
func TestARequestThatOthersHaveDecidedOnIsTheirs(t *testing.T) {
	requests := certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests")
	decidedByOthers := func(f *fixture, t *testing.T) {
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
		f := newFixture(t, instance(), registered(), renewed(t, "system:node:"+winNode, winNode))
		decidedByOthers(f, t)
		f.look(t, "csr-1")
		if writes := f.written(); len(writes) > 0 {
			t.Errorf("it writes %q", writes)
		}
	})
	t.Run("while it is looked at", func(t *testing.T) {
		f := newFixture(t, instance(), registered(), renewed(t, "system:node:"+winNode, winNode))
		raced := false
		f.clientset.PrependReactor("update", "certificatesigningrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
			if raced {
				return false, nil, nil
			}
			raced = true
			decidedByOthers(f, t)
			return true, nil, apierrors.NewConflict(certificatesv1.Resource("certificatesigningrequests"), "csr-1", errors.New("changed"))
		})
		f.look(t, "csr-1")
		if got := f.conditions(t, "csr-1"); !raced || len(got) != 1 {
			t.Errorf("conditions are %v", got)
		}
	})
	t.Run("but a conflict about something else is tried again", func(t *testing.T) {
		f := newFixture(t, instance(), registered(), renewed(t, "system:node:"+winNode, winNode))
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
		if f.look(t, "csr-1"); len(f.conditions(t, "csr-1")) != 1 {
			t.Error("it is not approved")
		}
	})
	t.Run("and another request of the same name is not written to", func(t *testing.T) {
		csr := renewed(t, "system:node:"+winNode, winNode)
		f := newFixture(t, instance(), registered(), csr)
		another := csr.DeepCopy()
		another.UID = "another"
		if err := f.clientset.Tracker().Update(requests, another, ""); err != nil {
			t.Fatal(err)
		}
		if f.look(t, csr.Name); len(f.written()) > 0 {
			t.Errorf("it writes %q", f.written())
		}
	})
}

// a foreign request causes no read and no write.
func TestRequestsOfFiftyLinuxNodesAreLeftAlone(t *testing.T) {
	objects, names := []client.Object{instance(), registered()}, []string{}
	for i := range 50 {
		node := fmt.Sprintf("worker-%d", i)
		client, serving := renewed(t, "system:node:"+node, node), asked(t, node, []string{node, winNode}, privateIP)
		client.Name, serving.Name = "client-"+node, "serving-"+node
		objects, names = append(objects, namedNode(node), client, serving), append(names, client.Name, serving.Name)
	}
	f := newFixture(t, objects...)
	f.Live = failing{}
	for _, name := range names {
		if result := f.look(t, name); result.RequeueAfter > 0 {
			t.Errorf("%s is looked at again", name)
		}
	}
	if written, said := f.written(), f.said(); len(written)+len(said) > 0 || len(f.clientset.Actions()) > 0 {
		t.Errorf("writes %q, events %q", written, said)
	}
}

// failing is an API server that must not be called.
type failing struct{ client.Reader }

func (failing) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nobody was to ask")
}

// counting counts the get and list requests.
type counting struct {
	client.Reader
	lists int
	gets  int
}

func (c *counting) Get(ctx context.Context, key client.ObjectKey, into client.Object,
	options ...client.GetOption) error {
	c.gets++
	return c.Reader.Get(ctx, key, into, options...)
}

func (c *counting) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c.lists++
	return c.Reader.List(ctx, list, options...)
}

//
func TestARequestWaitsForItsNode(t *testing.T) {
	csr := asked(t, winNode, []string{winNode}, privateIP)
	f := newFixture(t, instance(), csr)
	counted := &counting{Reader: f.api}
	f.Live = counted
	if result := f.look(t, csr.Name); result.RequeueAfter > 0 || counted.lists > 0 {
		t.Errorf("it is looked at again after %s, and the cluster was read %d times", result.RequeueAfter, counted.lists)
	}
	if len(f.conditions(t, csr.Name))+len(f.said()) > 0 {
		t.Fatal("it is decided on before the Node is there, or told")
	}
	if woken := f.pendingOf(t.Context(), winNode); len(woken) != 1 || woken[0].Name != csr.Name {
		t.Fatalf("the Node wakes %v", woken)
	}
	if woken := f.pendingOf(t.Context(), "worker-0"); len(woken) > 0 {
		t.Errorf("another Node wakes %v", woken)
	}
	if err := f.api.Create(t.Context(), registered()); err != nil {
		t.Fatal(err)
	}
	if f.look(t, csr.Name); len(f.conditions(t, csr.Name)) != 1 {
		t.Error("it is not approved once the Node is there")
	}
}

func TestWhatIsKeptInMemoryOfRequests(t *testing.T) {
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
		object, err := lean(fill(csr))
		if err != nil {
			t.Fatal(err)
		}
		return object.(*certificatesv1.CertificateSigningRequest)
	}
	t.Run("is what a pending one of a kubelet is judged by", func(t *testing.T) {
		csr := asked(t, winNode, []string{winNode}, privateIP)
		csr.CreationTimestamp, csr.UID, csr.Spec.ExpirationSeconds = metav1.Now(), "uid", new(int32(600))
		got := kept(csr.DeepCopy())
		if size(got) > 4096 || got.UID != csr.UID || !got.CreationTimestamp.Equal(&csr.CreationTimestamp) ||
			!reflect.DeepEqual(got.Spec, csr.Spec) {
			t.Errorf("it is %+v", got)
		}
		f := newFixture(t, instance(), registered(), got)
		if f.look(t, csr.Name); len(f.conditions(t, csr.Name)) != 1 {
			t.Error("by what is kept it is not approved")
		}
	})
	t.Run("is not more of one that is too large than that it is", func(t *testing.T) {
		csr := asked(t, winNode, nil)
		csr.Spec.Request = []byte(large)
		got := kept(csr)
		if len(got.Spec.Request) != certrequest.Limit+1 || cap(got.Spec.Request) > 2*certrequest.Limit {
			t.Errorf("%d bytes are kept of it", cap(got.Spec.Request))
		}
	})
	t.Run("is of others' hardly anything", func(t *testing.T) {
		decided := asked(t, winNode, nil)
		decided.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Message: large}}
		others := asked(t, winNode, nil)
		others.Spec.SignerName, others.Spec.Request = "example.com/signer", []byte(large)
		for _, csr := range []*certificatesv1.CertificateSigningRequest{decided, others} {
			name := csr.Spec.SignerName
			if got := kept(csr); size(got) > 1024 || got.Spec.SignerName != name || undecided(got) != (csr == others) {
				t.Errorf("%d bytes are kept of %+v", size(got), got)
			}
		}
	})
}
