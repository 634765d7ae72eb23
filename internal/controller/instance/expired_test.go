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
	s := x.newScope(x.getInstance())
	s.Cluster = *x.facts
	spec, err := x.newDependencies().specs.Build(s, nodeWithSubnet(trialSubnet))
	if err != nil {
		x.t.Fatal(err)
	}
	return append([]nodespec.Identity{spec.Identity}, spec.Identities...)
}

// runHostClock advances the clock of the host during the test. After a long step of the clock, the agent's service
// may be busy, and an agent command waits for the service by that clock.
func (x *trial) runHostClock() {
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

// reportReady sets the Ready condition of the node, as its kubelet or the node lifecycle controller does.
func (x *trial) reportReady(ready corev1.ConditionStatus) {
	x.t.Helper()
	node := x.getNode()
	now := x.clock.Now()
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
		LastHeartbeatTime: metav1.NewTime(now),
	}}
	if err := x.Client.Status().Update(x.t.Context(), node); err != nil {
		x.t.Fatal(err)
	}
}

func (h *agentHost) servicePID(service string) int {
	h.t.Helper()
	found, exists := h.machine.Service(service)
	if !exists || found.State != host.ServiceRunning {
		return 0
	}
	return found.PID
}

// A running kubelet may have pods, even with an expired certificate. The kubelet restarts for a new certificate,
// so a disruption slot is needed.
func TestExpiredCertificate_NeedsSlotIfKubeletRuns(t *testing.T) {
	x, h, gate := nodeInService(t, "None")
	kubelet := x.identitiesOf()[0]
	process := h.servicePID(nodespec.ServiceKubelet)
	x.clock.Step(2 * month)
	x.runHostClock()
	x.reportReady(corev1.ConditionUnknown)
	gate.refuseAll(v1alpha1.ReasonMaxUnavailableReached)
	instance := x.reconcileUntil("its turn", hasSummary(v1alpha1.ReasonMaxUnavailableReached))
	expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonMaxUnavailableReached)
	if len(gate.requests) == 0 || gate.requests[0].Cause != v1alpha1.CauseRepair || process == 0 ||
		h.servicePID(nodespec.ServiceKubelet) != process {
		t.Errorf("asked were %v; the kubelet's process was %d and is %d", gate.requests, process,
			h.servicePID(nodespec.ServiceKubelet))
	}
	gate.closed = false
	x.reconcileUntil("a new certificate", func(*v1alpha1.WindowsInstance) bool {
		got := h.currentCertificate(kubelet)
		return got != nil && x.clock.Now().Before(got.NotAfter)
	})
	x.reportReady(corev1.ConditionTrue)
	x.reconcileUntil("a Ready node", hasSummary(v1alpha1.ReasonReady))
	if now := h.servicePID(nodespec.ServiceKubelet); now == 0 || now == process {
		t.Errorf("the kubelet's process is %d still", now)
	}
	if !slices.Contains(gate.released, machine) || len(gate.held) > 0 {
		t.Errorf("released were %v, held are %v", gate.released, gate.held)
	}
}

// A host that was off for too long has no workload left to disrupt: the pods were evicted, the kubelet has no
// valid certificate, and the disruption policy already counts the node as unavailable. The repair frees a slot,
// and waits for none. R-134
func TestExpiredCertificate_HostRecoversWithoutSlot(t *testing.T) {
	x, h, gate := nodeInService(t, "None")
	identities := x.identitiesOf()
	h.machine.PowerOff()
	x.clock.Step(2 * month)
	x.runHostClock()
	x.reportReady(corev1.ConditionUnknown)
	x.restartOperator() // the operator was not running either
	gate.refuseAll(v1alpha1.ReasonMaxUnavailableReached)
	if err := h.machine.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.reconcileUntil("new certificates", func(*v1alpha1.WindowsInstance) bool {
		return !slices.ContainsFunc(identities, func(identity nodespec.Identity) bool {
			got := h.currentCertificate(identity)
			return got == nil || !x.clock.Now().Before(got.NotAfter)
		})
	})
	x.reportReady(corev1.ConditionTrue)
	instance := x.reconcileUntil("a Ready node", hasSummary(v1alpha1.ReasonReady))
	expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	if len(gate.requests) > 0 {
		t.Errorf("the gate was asked: %v", gate.requests)
	}
	if events := x.popEvents(); !slices.ContainsFunc(events, func(e string) bool {
		return strings.Contains(e, v1alpha1.ReasonCertificateExpired)
	}) {
		t.Errorf("no event says that its certificate has expired: %q", events)
	}
	for _, certificate := range instance.Status.Certificates {
		if !x.clock.Now().Before(certificate.NotAfter.Time) {
			t.Errorf("the status still has %+v", certificate)
		}
	}
}

// The name was free at first, and much later a Linux machine has registered under it. R-132
func TestExpiredCertificate_NameOfForeignNodeNotSigned(t *testing.T) {
	for name, bound := range map[string]string{"that says nothing": "",
		"that is bound to another instance": "winworker-other"} {
		t.Run("a Node "+name, func(t *testing.T) {
			x, _, _ := nodeInService(t, "None")
			if err := x.Client.Delete(t.Context(), x.getNode()); err != nil {
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
			version := x.getNode().ResourceVersion
			signed := x.enableSigning(month)
			x.clock.Step(2 * month)
			x.runHostClock()
			instance := x.reconcileUntil("the conflict", hasSummary(v1alpha1.ReasonNameConflict))
			expectCondition(t, instance, v1alpha1.ConditionJoined, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
			if len(signed) > 0 || x.getNode().ResourceVersion != version {
				t.Errorf("signed %v; the Node was written: %t", signed, x.getNode().ResourceVersion != version)
			}
		})
	}
}

// The host knows the request, and therefore the name of its object. The first creator of the object chooses the
// validity. R-132
func TestExpiredCertificate_RequestCreatedByHostNotApproved(t *testing.T) {
	x := newTrial(t)
	h, identity := x.onAzure(shortValidity)
	signed := x.enableSigning(month)
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
	condition := expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonAPIRequestFailed)
	if !strings.Contains(condition.Message, "created by system:node:"+machine) || len(signed) > 0 ||
		h.currentCertificate(identity) != nil {
		t.Errorf("signed %v; it says %q", signed, condition.Message)
	}
	list, err := x.clientset.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || isApproved(&list.Items[0]) {
		t.Errorf("%d requests (%v)", len(list.Items), err)
	}
}
