package instance

import (
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// identitiesOf returns the identities of the node in the spec of the host, starting with the kubelet's.
func (x *trial) identitiesOf() []nodespec.Identity {
	x.t.Helper()
	s := x.scope(x.instance())
	s.Cluster = *x.facts
	spec, err := x.rooms().specs.Of(s, nodeWithSubnet(trialSubnet))
	if err != nil {
		x.t.Fatal(err)
	}
	return append([]nodespec.Identity{spec.Identity}, spec.Identities...)
}

// letTimePass advances the clock of the host during the test. After a long step of the clock, the agent's service
// may be busy, and an agent command waits for the service by that clock.
func (x *trial) letTimePass() {
	ticker := time.NewTicker(50 * time.Millisecond)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				x.clock.Step(time.Second)
			}
		}
	}()
	x.t.Cleanup(func() {
		ticker.Stop()
		close(done)
		<-ended
	})
}

// reports sets the Ready condition of the node, as its kubelet or the node lifecycle controller does.
func (x *trial) reports(ready corev1.ConditionStatus) {
	x.t.Helper()
	node := x.node()
	now := x.clock.Now()
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
		LastHeartbeatTime: metav1.NewTime(now),
	}}
	if err := x.Client.Status().Update(x.t.Context(), node); err != nil {
		x.t.Fatal(err)
	}
}

func (h *agentHost) process(service string) int {
	h.t.Helper()
	found, there := h.machine.Service(service)
	if !there || found.State != host.ServiceRunning {
		return 0
	}
	return found.PID
}

// A running kubelet may have pods, even with an expired certificate. The kubelet restarts for a new certificate,
// so a disruption slot is needed.
func TestACertificateThatHasExpiredIsReplacedThroughTheGateWhereTheKubeletRuns(t *testing.T) {
	x, h, gate := nodeInService(t, "None")
	kubelet := x.identitiesOf()[0]
	process := h.process(nodespec.ServiceKubelet)
	x.clock.Step(2 * month)
	x.letTimePass()
	x.reports(corev1.ConditionUnknown)
	gate.shut(v1alpha1.ReasonMaxUnavailableReached)
	instance := x.until("its turn", summarized(v1alpha1.ReasonMaxUnavailableReached))
	expect(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonMaxUnavailableReached)
	if len(gate.asked) == 0 || gate.asked[0].Cause != v1alpha1.CauseRepair || process == 0 ||
		h.process(nodespec.ServiceKubelet) != process {
		t.Errorf("asked were %v; the kubelet's process was %d and is %d", gate.asked, process,
			h.process(nodespec.ServiceKubelet))
	}
	gate.closed = false
	x.until("a new certificate", func(*v1alpha1.WindowsInstance) bool {
		got := h.certificate(kubelet)
		return got != nil && x.clock.Now().Before(got.NotAfter)
	})
	x.reports(corev1.ConditionTrue)
	x.until("a Ready node", summarized(v1alpha1.ReasonReady))
	if now := h.process(nodespec.ServiceKubelet); now == 0 || now == process {
		t.Errorf("the kubelet's process is %d still", now)
	}
	if !slices.Contains(gate.released, machine) || len(gate.held) > 0 {
		t.Errorf("released were %v, held are %v", gate.released, gate.held)
	}
}

// A host that was off for too long has no workload left to disrupt: the pods were evicted, the kubelet has no
// valid certificate, and the disruption policy already counts the node as unavailable. The repair frees a slot,
// and waits for none. R-134
func TestAHostThatWasOffPastTheLifeOfItsCertificatesComesBackByItself(t *testing.T) {
	x, h, gate := nodeInService(t, "None")
	identities := x.identitiesOf()
	h.machine.PowerOff()
	x.clock.Step(2 * month)
	x.letTimePass()
	x.reports(corev1.ConditionUnknown)
	x.restartOperator() // the operator was not running either
	gate.shut(v1alpha1.ReasonMaxUnavailableReached)
	if err := h.machine.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.until("new certificates", func(*v1alpha1.WindowsInstance) bool {
		return !slices.ContainsFunc(identities, func(identity nodespec.Identity) bool {
			got := h.certificate(identity)
			return got == nil || !x.clock.Now().Before(got.NotAfter)
		})
	})
	x.reports(corev1.ConditionTrue)
	instance := x.until("a Ready node", summarized(v1alpha1.ReasonReady))
	expect(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	if len(gate.asked) > 0 {
		t.Errorf("the gate was asked: %v", gate.asked)
	}
	if told := x.told(); !slices.ContainsFunc(told, func(e string) bool {
		return strings.Contains(e, v1alpha1.ReasonCertificateExpired)
	}) {
		t.Errorf("no event says that its certificate has expired: %q", told)
	}
	for _, certificate := range instance.Status.Certificates {
		if !x.clock.Now().Before(certificate.NotAfter.Time) {
			t.Errorf("the status still has %+v", certificate)
		}
	}
}

// The name was free at first, and much later a Linux machine has registered under it. R-132
func TestANameThatAnotherMachinesNodeHasByNowIsNotSignedFor(t *testing.T) {
	for name, bound := range map[string]string{"that says nothing": "",
		"that is bound to another instance": "winworker-other"} {
		t.Run("a Node "+name, func(t *testing.T) {
			x, _, _ := nodeInService(t, "None")
			if err := x.Client.Delete(t.Context(), x.node()); err != nil {
				t.Fatal(err)
			}
			linux := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: machine, UID: "of-another",
				Labels: map[string]string{corev1.LabelOSStable: "linux"}}}
			if bound != "" {
				linux.Annotations = map[string]string{v1alpha1.AnnotationInstance: bound}
			}
			if err := x.Client.Create(t.Context(), linux); err != nil {
				t.Fatal(err)
			}
			version := x.node().ResourceVersion
			signed := x.signs(month)
			x.clock.Step(2 * month)
			x.letTimePass()
			instance := x.until("the conflict", summarized(v1alpha1.ReasonNameConflict))
			expect(t, instance, v1alpha1.ConditionJoined, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
			if len(signed) > 0 || x.node().ResourceVersion != version {
				t.Errorf("signed %v; the Node was written: %t", signed, x.node().ResourceVersion != version)
			}
		})
	}
}

// The host knows the request, and therefore the name of its object. The first creator of the object chooses the
// validity. R-132
func TestARequestThatTheHostHasSubmittedItselfIsNotApproved(t *testing.T) {
	x := newTrial(t)
	h, identity := x.onAzure(shortLife)
	signed := x.signs(month)
	x.clientset.PrependReactor("create", "certificatesigningrequests", func(action clienttesting.Action) (bool,
		runtime.Object, error) {
		request := action.(clienttesting.CreateAction).GetObject().(*certificatesv1.CertificateSigningRequest).DeepCopy()
		request.Spec.Username = "system:node:" + machine
		if err := x.clientset.Tracker().Add(request); err != nil {
			return true, nil, err
		}
		return true, nil, apierrors.NewAlreadyExists(schema.GroupResource{Group: certificatesv1.GroupName,
			Resource: "certificatesigningrequests"}, request.Name)
	})
	x.untilDue()
	instance, _ := x.reconcile()
	condition := expect(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonAPIRequestFailed)
	if !strings.Contains(condition.Message, "made by system:node:"+machine) || len(signed) > 0 ||
		h.certificate(identity) != nil {
		t.Errorf("signed %v; it says %q", signed, condition.Message)
	}
	list, err := x.clientset.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || isApproved(&list.Items[0]) {
		t.Errorf("%d requests (%v)", len(list.Items), err)
	}
}
