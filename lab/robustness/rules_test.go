package robustness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/audit"
	"github.com/windows-machine-config/wmco/lab/secretscan"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// past creates a history: each object is changed a minute after the previous one.
type past struct {
	Evidence
}

func newHistory(objects ...client.Object) past {
	p := past{Evidence{Operator: "operator", Hosts: map[string]Host{
		"a": {Names: []string{"a", "a.example.com"}, Addresses: []string{"10.0.0.1"}, HostKeys: []string{"SHA256:a"}},
		"b": {Names: []string{"b"}, Addresses: []string{"10.0.0.2"}, HostKeys: []string{"SHA256:b"}},
	}}}
	for i, object := range objects {
		var kind string
		switch object.(type) {
		case *corev1.Node:
			kind = kindNode
		case *v1alpha1.WindowsInstance:
			kind = kindInstance
		case *v1alpha1.WindowsDisruptionPolicy:
			kind = kindPolicy
		case *certificatesv1.CertificateSigningRequest:
			kind = kindRequest
		case *corev1.Pod:
			kind = kindPod
		}
		p.Changes = append(p.Changes, testenv.Change{Revision: uint64(i + 1), At: noon.Add(time.Duration(i) * time.Minute),
			Kind: kind, Name: client.ObjectKeyFromObject(object).String(), Object: object})
	}
	return p
}

// expectViolations checks the number of violations of a rule.
func (p past) expectViolations(t *testing.T, sentence string, times int) {
	t.Helper()
	var got []string
	for _, v := range Judge(p.Evidence) {
		if v.Rule == sentence {
			got = append(got, v.What)
		}
	}
	if len(got) != times {
		t.Errorf("%q is broken %d times, want %d: %q", sentence, len(got), times, got)
	}
}

func newInstance(name string, change ...func(*v1alpha1.WindowsInstance)) *v1alpha1.WindowsInstance {
	i := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "wmco", Name: name, UID: types.UID(name)},
		Spec: v1alpha1.WindowsInstanceSpec{Address: map[string]string{"a": "10.0.0.1", "b": "b"}[name]}}
	for _, each := range change {
		each(i)
	}
	return i
}

func newPolicy(limit int32, entries ...v1alpha1.Disruption) *v1alpha1.WindowsDisruptionPolicy {
	return &v1alpha1.WindowsDisruptionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "wmco", Name: "cluster"},
		Spec:   v1alpha1.WindowsDisruptionPolicySpec{MaxUnavailable: ptr.To(intstr.FromInt32(limit))},
		Status: v1alpha1.WindowsDisruptionPolicyStatus{Disruptions: entries}}
}

func newDisruption(name string, after time.Duration) v1alpha1.Disruption {
	return v1alpha1.Disruption{Instance: name, InstanceUID: types.UID(name), Node: name, Since: metav1.NewTime(noon.Add(after))}
}

func newNode(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
	for _, each := range change {
		each(n)
	}
	return n
}

func setCordoned(n *corev1.Node) {
	n.Spec.Unschedulable, n.Annotations = true, map[string]string{v1alpha1.AnnotationCordoned: "x"}
}

func TestRules_NodeDisruptedOnlyWithEntry(t *testing.T) {
	const cordon = "a node in service is made unschedulable only with an entry in the policy's status"
	newHistory(newNode("a"), newPolicy(1, newDisruption("a", 0)), newNode("a", setCordoned)).expectViolations(t, cordon, 0)
	newHistory(newNode("a"), newPolicy(1, newDisruption("b", 0)), newNode("a", setCordoned)).expectViolations(t, cordon, 1)
	newHistory(newNode("a"), newNode("a", setCordoned), newNode("a", setCordoned)).expectViolations(t, cordon, 1)
	newHistory(newNode("a", func(n *corev1.Node) { n.Status.Conditions = nil }), newNode("a", setCordoned)).expectViolations(t, cordon, 0)
	newHistory(newNode("a", func(n *corev1.Node) { n.Spec.Unschedulable = true })).expectViolations(t, cordon, 0) // cordoned by the user

	const restart = "a host in service restarts only with an entry in the policy's status"
	for _, test := range []struct {
		before     []client.Object
		violations int
	}{
		{[]client.Object{newNode("a"), newPolicy(1)}, 1},
		{[]client.Object{newNode("a"), newPolicy(1, newDisruption("a", 0))}, 0},
		{[]client.Object{newNode("a", func(n *corev1.Node) { n.Status.Conditions = nil }), newPolicy(1)}, 0},
		{[]client.Object{newNode("a", func(n *corev1.Node) { n.Spec.Unschedulable = true }), newPolicy(1)}, 1}, // cordoned by a user
		{[]client.Object{newPolicy(1), newPolicy(1)}, 0},
	} {
		p := newHistory(append(test.before, newNode("b"))...)
		p.Restarts = []Restart{{"a", noon.Add(2*time.Minute + time.Second)}}
		p.expectViolations(t, restart, test.violations)
	}
	for _, test := range []struct {
		objects    []client.Object
		violations int
	}{
		{[]client.Object{newNode("a")}, 1}, // no events around the restart
		{[]client.Object{newNode("a"), newPolicy(1, newDisruption("a", 0))}, 0},
		{[]client.Object{newPolicy(1), newNode("a", func(n *corev1.Node) { n.Status.Conditions = nil })}, 0},
		{[]client.Object{newPolicy(1)}, 0},
	} {
		p := newHistory(test.objects...)
		p.Restarts = []Restart{{"a", noon.Add(time.Hour)}}
		p.expectViolations(t, restart, test.violations)
		p.Restarts[0].At = noon.Add(-time.Hour) // before any known state
		p.expectViolations(t, restart, 0)
	}
	// The last change around the restart.
	for _, last := range []client.Object{newPolicy(1, newDisruption("a", 0)), newNode("a", func(n *corev1.Node) { n.Status.Conditions = nil })} {
		p := newHistory(newNode("a"), newNode("b"), newNode("b"), last)
		p.Restarts = []Restart{{"a", noon.Add(2 * time.Minute)}}
		p.expectViolations(t, restart, 0)
	}
}

func TestRules_UniqueNamesAndPinnedHostKeys(t *testing.T) {
	named := func(name string, confirmed bool) func(*v1alpha1.WindowsInstance) {
		return func(i *v1alpha1.WindowsInstance) {
			i.Status.NodeRef = &v1alpha1.NodeReference{Name: name, Confirmed: confirmed}
		}
	}
	const twice = "a name is confirmed for one instance at a time"
	newHistory(newInstance("a", named("x", true)), newInstance("b", named("x", false))).expectViolations(t, twice, 0)
	newHistory(newInstance("a", named("x", true)), newInstance("b", named("x", true))).expectViolations(t, twice, 1)
	newHistory(newInstance("a", named("x", true)), newInstance("a", named("x", true))).expectViolations(t, twice, 0)

	pinned := func(key string) func(*v1alpha1.WindowsInstance) {
		return func(i *v1alpha1.WindowsInstance) { i.Status.HostKey = &v1alpha1.HostKey{Fingerprint: key} }
	}
	accepts := func(key string) func(*v1alpha1.WindowsInstance) {
		return func(i *v1alpha1.WindowsInstance) {
			i.Annotations = map[string]string{v1alpha1.AnnotationAcceptHostKey: key}
		}
	}
	other := func(i *v1alpha1.WindowsInstance) { i.UID = "other" }
	const rule = "a changed host key is taken only when an administrator has accepted it"
	first := newInstance("a", pinned("SHA256:a"))
	newHistory(first, newInstance("a", pinned("SHA256:b"))).expectViolations(t, rule, 1)
	newHistory(first, newInstance("a"), newInstance("a", pinned("SHA256:b"))).expectViolations(t, rule, 1) // unpinned meanwhile
	newHistory(first, newInstance("a", pinned("SHA256:a"), accepts("SHA256:b")), newInstance("a", pinned("SHA256:b"))).expectViolations(t, rule, 0)
	newHistory(first, newInstance("a", pinned("SHA256:a"), accepts("SHA256:c")), newInstance("a", pinned("SHA256:b"))).expectViolations(t, rule, 1)
	newHistory(first, newInstance("a", pinned("SHA256:b"), other)).expectViolations(t, rule, 0) // another object of the name

	const foreign = "a pinned host key is one of the host's"
	newHistory(newInstance("a", pinned("SHA256:a"))).expectViolations(t, foreign, 0)
	newHistory(newInstance("a", pinned("SHA256:b"))).expectViolations(t, foreign, 1)
}

func newRequest(t *testing.T, user, name string, dns []string, ips []net.IP, approved bool) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}, DNSNames: dns, IPAddresses: ips}, key)
	if err != nil {
		t.Fatal(err)
	}
	r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: certificatesv1.CertificateSigningRequestSpec{
		Username: user, Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})}}
	if approved {
		r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
	}
	return r
}

func TestRules_CertificateOfAnotherHostIsViolation(t *testing.T) {
	const rule = "a certificate has names and addresses of its host only"
	own, other := []net.IP{net.ParseIP("10.0.0.1")}, []net.IP{net.ParseIP("10.0.0.2")}
	const a = "system:node:a"
	newHistory(newRequest(t, a, a, []string{"a", "a.example.com"}, own, true)).expectViolations(t, rule, 0)
	newHistory(newRequest(t, a, a, nil, other, false)).expectViolations(t, rule, 0) // not approved
	newHistory(newRequest(t, a, a, nil, other, true)).expectViolations(t, rule, 1)
	newHistory(newRequest(t, a, a, []string{"b"}, nil, true)).expectViolations(t, rule, 1)
	newHistory(newRequest(t, a, "system:node:b", nil, nil, true)).expectViolations(t, rule, 1)
	newHistory(newRequest(t, "operator", "system:node:master-0", nil, nil, true)).expectViolations(t, rule, 1)
	newHistory(newRequest(t, "operator", "admin", nil, nil, true)).expectViolations(t, rule, 1)
	newHistory(newRequest(t, "operator", "system:node:b", nil, nil, true)).expectViolations(t, rule, 0)

	for _, name := range []string{"printer.example.com", "10.0.0.2", "spiffe://example.com/printer", "system:node:b"} {
		spec, err := newForgedRequest("a", name)
		if err != nil {
			t.Fatal(err)
		}
		r := newRequest(t, a, a, nil, nil, true)
		r.Spec.Request = spec.Request
		newHistory(r).expectViolations(t, rule, 1)
	}
}

func TestRules_InstanceNotReadyNeedsReasonAndAction(t *testing.T) {
	const rule = "an instance that is not Ready has a reason and a next action"
	newStatus := func(summary, next string, conditions ...metav1.Condition) past {
		return newHistory(newInstance("a", func(i *v1alpha1.WindowsInstance) {
			i.Status.Summary, i.Status.NextAction, i.Status.Conditions = summary, next, conditions
		}))
	}
	down := metav1.Condition{Type: "Reachable", Status: metav1.ConditionFalse, Reason: "Unreachable", Message: "It is off."}
	newStatus("", "").expectViolations(t, rule, 0) // just created
	newStatus("Unreachable", "The operator retries.", down).expectViolations(t, rule, 0)
	newStatus("Unreachable", "", down).expectViolations(t, rule, 1)
	newStatus("Ready", "", down).expectViolations(t, rule, 1)
	newStatus("Ready", "", metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue}).expectViolations(t, rule, 0)
	down.Message = ""
	newStatus("Unreachable", "The operator retries.", down).expectViolations(t, rule, 1)
}

func TestRules_RepeatedLossOfReadyIsViolation(t *testing.T) {
	const rule = "an instance does not lose Ready again and again while nobody does anything"
	flapping := func(times int) past {
		var states []client.Object
		for range times {
			for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse} {
				states = append(states, newInstance("a", func(i *v1alpha1.WindowsInstance) {
					i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status}}
				}))
			}
		}
		return newHistory(states...)
	}
	flapping(maxReadyLosses).expectViolations(t, rule, 0)
	flapping(maxReadyLosses+1).expectViolations(t, rule, 1)
	flapping(maxReadyLosses+5).expectViolations(t, rule, 1)
	early := flapping(maxReadyLosses + 1)
	early.FaultsEnd = 2 // the first time was before
	early.expectViolations(t, rule, 0)
}

func TestExposedIn_RemovedSecretReported(t *testing.T) {
	secrets := secretscan.Secrets{"the key": {"c2VjcmV0"}}
	newObject := func(text string) client.Object {
		return newInstance("a", func(i *v1alpha1.WindowsInstance) { i.Status.NextAction = text })
	}
	if exposed := exposedIn(newHistory(newObject("fine"), newObject("fine again")).Changes, secrets); len(exposed) != 0 {
		t.Error(exposed)
	}
	p := newHistory(newObject("fine"), newObject("look: c2VjcmV0"), newObject("still: c2VjcmV0"), newObject("fine"))
	p.Changes = append(p.Changes, testenv.Change{Kind: kindInstance, Name: "wmco/a"}) // its deletion
	if exposed := exposedIn(p.Changes, secrets); len(exposed) != 1 || !strings.Contains(exposed[0], "the key") {
		t.Error(exposed)
	}
}

func TestNoiseOf_ReportsRequestsAndConnections(t *testing.T) {
	if noise := formatActivity(nil, 0); len(noise) > 0 {
		t.Error(noise)
	}
	if noise := formatActivity([]audit.Event{{Verb: "get", URI: "/api/v1/nodes/a"}}, 2); len(noise) != 2 || noise[0] != "get /api/v1/nodes/a" {
		t.Error(noise)
	}
}

func TestRules_OperatorMustNotWriteForeignNode(t *testing.T) {
	did := func(user, verb, resource, subresource, name string, code int) past {
		var e audit.Event
		e.Verb, e.User.Username, e.Response.Code = verb, user, code
		e.Object.Resource, e.Object.Subresource, e.Object.Name = resource, subresource, name
		p := newHistory()
		p.Requests = []audit.Event{e}
		return p
	}
	const nodes = "the operator writes to no Node of another"
	did("operator", "patch", "nodes", "", "a", 200).expectViolations(t, nodes, 0)
	did("operator", "get", "nodes", "", "master-0", 200).expectViolations(t, nodes, 0)
	did("operator", "patch", "nodes", "", "master-0", 403).expectViolations(t, nodes, 0)
	did("operator", "patch", "nodes", "", "master-0", 200).expectViolations(t, nodes, 1)
	did("somebody", "patch", "nodes", "", "master-0", 200).expectViolations(t, nodes, 0)
}
