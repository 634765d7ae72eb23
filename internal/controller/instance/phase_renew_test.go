package instance

import (
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/remote"
)

const month = 30 * 24 * time.Hour

const week = 7 * 24 * time.Hour

// The operator waits for weeks until a renewal is due, and is restarted in between. R-131
func TestRenew_RenewsBeforeExpiry(t *testing.T) {
	x := newTrial(t)
	h, identity := x.onAzure(week)
	gate := openGate()
	gate.refuseAll(v1alpha1.ReasonOutsideMaintenanceWindow) // no disruption is allowed during the test
	x.Gate = gate
	signed := x.enableSigning(week)
	version := x.getNode().ResourceVersion
	weeks := 4
	if testing.Short() {
		weeks = 2
	}
	end := noon.Add(time.Duration(weeks) * week)
	renewals := 0
	for passes := 0; x.clock.Now().Before(end); passes++ {
		before := x.getInstance().Status.Certificates[0]
		instance, after := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		now := instance.Status.Certificates[0]
		if now.NotAfter != before.NotAfter {
			renewals++
			got := h.currentCertificate(identity)
			if got == nil || !got.NotAfter.Equal(now.NotAfter.Time) || got.Subject.CommonName != identity.CommonName ||
				!x.clock.Now().Before(before.NotAfter.Time) {
				t.Fatalf("renewal %d at %s of what was good until %s: the host has %+v", renewals, x.clock.Now(),
					before.NotAfter, got)
			}
			if renewals == 2 { // another operator becomes the leader; the Node has the host key of the first contact by now
				x.restartOperator()
				version = x.getNode().ResourceVersion
			}
		}
		if after <= 0 || after > week || passes > 2000 {
			t.Fatalf("look %d: the next one is after %s", passes, after)
		}
		x.clock.Step(after)
	}
	if renewals < weeks || renewals > weeks*3/2 {
		t.Errorf("%d renewals in %d weeks of certificates of one week", renewals, weeks)
	}
	if h.countLogins() != renewals {
		t.Errorf("%d connections for %d renewals", h.countLogins(), renewals)
	}
	if each := len(h.agentCommands()) / renewals; each > 3 {
		t.Errorf("%d processes were started for each: %q", each, h.agentCommands()[:each])
	}
	if len(gate.requests) > 0 || x.getNode().ResourceVersion != version {
		t.Errorf("the gate was asked: %v; the Node was changed: %t", gate.requests, x.getNode().ResourceVersion != version)
	}
	if len(signed) != 1 || len(signed[certificatesv1.KubeAPIServerClientSignerName]) != renewals {
		t.Errorf("signed were %d by %d signers", len(signed[certificatesv1.KubeAPIServerClientSignerName]), len(signed))
	}
}

func TestRenew_IdleBetweenRenewals(t *testing.T) {
	x := newTrial(t)
	h, _ := x.onAzure(month)
	x.clock.Step(month / 2)
	instance, after := x.reconcile()
	if want := instance.Status.Certificates[0].RenewAt.Sub(x.clock.Now()); after != want {
		t.Errorf("the next look is after %s, and the renewal is due after %s", after, want)
	}
	version := instance.ResourceVersion
	for range 3 {
		x.clock.Step(time.Hour)
		instance, _ = x.reconcile()
	}
	if h.countLogins() > 0 || instance.ResourceVersion != version {
		t.Errorf("%d connections; written: %t", h.countLogins(), instance.ResourceVersion != version)
	}
	x.clock.SetTime(instance.Status.Certificates[0].RenewAt.Add(-time.Minute))
	if _, after := x.reconcile(); after != time.Minute {
		t.Errorf("the renewal is due after a minute, and the next look is after %s", after)
	}
}

func TestRenew_UnreachableHostIsRetried(t *testing.T) {
	t.Run("is asked again, and its node stays what it is meanwhile", func(t *testing.T) {
		x := newTrial(t)
		h, identity := x.onAzure(month)
		x.enableSigning(month)
		h.off = true
		x.untilDue()
		dials := x.countDials()
		for range 5 {
			instance, after := x.reconcile()
			condition := expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, string(remote.ReasonUnreachable))
			expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
			if !strings.Contains(condition.Message, "cloud-node-manager") ||
				!strings.Contains(condition.Message, ", valid until 2") {
				t.Errorf("it says %q", condition.Message)
			}
			if after <= 0 || after > maxRetryDelay {
				t.Fatalf("the next attempt is after %s", after)
			}
			x.reconcile() // an unrelated event must not cause a retry
			x.clock.Step(after)
		}
		if got := x.countDials() - dials; got != 5 {
			t.Errorf("%d attempts", got)
		}
		h.off = false
		instance, _ := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		if got := h.currentCertificate(identity); got == nil || !x.clock.Now().Before(got.NotAfter) {
			t.Errorf("it has %+v", got)
		}
		if instance.Status.Summary != v1alpha1.ReasonReady {
			t.Errorf("summary %s", instance.Status.Summary)
		}
	})
	t.Run("gets it when it is back, also long after it has expired", func(t *testing.T) {
		x := newTrial(t)
		h, identity := x.onAzure(month)
		x.enableSigning(month)
		x.clock.Step(3 * month)
		instance, _ := x.reconcile()
		if got := h.currentCertificate(identity); got == nil || !got.NotAfter.Equal(instance.Status.Certificates[0].NotAfter.Time) ||
			!x.clock.Now().Before(got.NotAfter) {
			t.Errorf("it has %+v", got)
		}
	})
	t.Run("is not asked while its node does not work: what brings that back brings the certificate", func(t *testing.T) {
		x := newTrial(t)
		h, _ := x.onAzure(month)
		x.clock.Step(month)
		x.breakNode()
		x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.SpecDigest = "" })
		h.off = true
		instance, _ := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionReachable, metav1.ConditionFalse, string(remote.ReasonUnreachable))
		if x.countDials() > 1 {
			t.Errorf("%d attempts in one pass", x.countDials())
		}
	})
}

func TestRenew_DoesNotWaitForBlockedChange(t *testing.T) {
	t.Run("that the gate does not let through", func(t *testing.T) {
		x := newTrial(t)
		h, identity := x.onAzure(month)
		gate := openGate()
		gate.refuseAll(v1alpha1.ReasonDisruptionsPaused)
		x.Gate = gate
		x.enableSigning(month)
		x.facts.Kubelet.ClusterDomain = "other.local"
		x.untilDue()
		x.changeNode(requestReboot) // known to disrupt pods
		instance, _ := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonDisruptionsPaused)
		if h.currentCertificate(identity) == nil {
			t.Error("the certificate was not renewed")
		}
	})
	t.Run("that comes by the Machine's replacement", func(t *testing.T) {
		x := newTrial(t)
		h, identity := x.onAzure(month)
		x.enableSigning(month)
		x.changeSpec(x.getInstance(), func(i *v1alpha1.WindowsInstance) { i.Spec.UpgradeStrategy = v1alpha1.UpgradeReplace })
		x.Version = "2.0.0"
		x.facts.Kubelet.ClusterDomain = "other.local"
		x.untilDue()
		instance, _ := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonReplacementPending)
		if h.currentCertificate(identity) == nil {
			t.Error("the certificate was not renewed")
		}
	})
}

func TestRenew_PausedInstanceNotRenewed(t *testing.T) {
	x := newTrial(t)
	h, _ := x.onAzure(month)
	x.clock.Step(month)
	x.changeSpec(x.getInstance(), func(i *v1alpha1.WindowsInstance) { i.Spec.Paused = true })
	if _, after := x.reconcile(); h.countLogins() > 0 || after != 0 {
		t.Errorf("%d connections, the next look after %s", h.countLogins(), after)
	}
}

// A host that requests another identity gets nothing signed. R-132
func TestRenew_OtherIdentityIsRefused(t *testing.T) {
	x := newTrial(t)
	h, identity := x.onAzure(month)
	signed := x.enableSigning(month)
	s := x.newScope(x.getInstance())
	s.Cluster = *x.facts
	spec, err := x.newDependencies().specs.Build(s, nodeWithSubnet("10.132.0.0/24"))
	if err != nil {
		t.Fatal(err)
	}
	spec.Identities = slices.Clone(spec.Identities)
	for i := range spec.Identities {
		spec.Identities[i].CommonName = "system:cloud-node-manager:another" // the host has changed its own spec
	}
	h.storeSpec(spec)
	x.untilDue()
	instance, _ := x.reconcile()
	condition := expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse,
		v1alpha1.ReasonCertificateRequestRefused)
	if !strings.Contains(condition.Message, "system:cloud-node-manager:another") || len(signed) > 0 ||
		h.currentCertificate(identity) != nil {
		t.Errorf("signed %v; it says %q", signed, condition.Message)
	}
	expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	requests, err := x.clientset.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(requests.Items) > 0 {
		t.Errorf("%d requests were made (%v)", len(requests.Items), err)
	}
}

func TestRenew_ShortValidityNotRenewedContinuously(t *testing.T) {
	for name, validity := range map[string]time.Duration{"that is due at issue": time.Minute,
		"that is due in some seconds": 80 * time.Second} {
		t.Run("one "+name, func(t *testing.T) {
			x := newTrial(t)
			h, _ := x.onAzure(month)
			x.enableSigning(validity)
			x.untilDue()
			start := x.clock.Now()
			for x.clock.Since(start) < 10*time.Minute {
				instance, after := x.reconcile()
				expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
				x.reconcile() // an unrelated event must not cause a renewal
				if after <= 0 || after > time.Minute || h.countLogins() > 10 {
					t.Fatalf("the next look is after %s, %d renewals after %s", after, h.countLogins(), x.clock.Since(start))
				}
				x.clock.Step(after)
			}
			if got := h.countLogins(); got < 8 || got > 10 {
				t.Errorf("%d renewals in ten minutes", got)
			}
		})
	}
}
