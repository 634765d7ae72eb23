package instance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/identity"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// shortValidity is the maximum lifetime of a certificate from the cluster's signer.
const shortValidity = 48 * time.Hour

// clusterFaults causes random faults of a cluster in the course of a month.
type clusterFaults struct {
	*trial
	random *rand.Rand
	host   *agentHost
	// next is the time of the next fault, after the end of the last one.
	next time.Time
}

// injectFault causes a fault when due.
func (w *clusterFaults) injectFault() {
	if w.clock.Now().Before(w.next) {
		return
	}
	w.host.off = false
	lasts := w.randomMinutes(180)
	switch w.random.IntN(5) {
	case 0: // another operator becomes the leader
		w.restartOperator()
	case 1:
		w.host.off = true
		w.next = w.clock.Now().Add(lasts)
		return
	case 2: // the clock is set forward
		w.clock.Step(w.randomMinutes(60))
	case 3: // the clock is set back
		w.clock.SetTime(w.clock.Now().Add(-w.randomMinutes(60)))
	case 4: // no operator runs
		w.restartOperator()
		w.clock.Step(lasts)
	}
	w.next = w.clock.Now().Add(w.randomMinutes(12 * 60))
}

func (w *clusterFaults) randomMinutes(most int) time.Duration {
	return time.Duration(1+w.random.IntN(most)) * time.Minute
}

// In thirty days of restarts of the operator, unavailable hosts and clock changes, the certificate never expires.
// It is renewed once per lifetime and not early, and no other connections to the host are made.
func TestRotation_CertificateStaysValidForMonth(t *testing.T) {
	months, days := uint64(3), 30
	if testing.Short() {
		months, days = 1, 6
	}
	for seed := range months {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			x := newTrial(t)
			h, identity := x.onAzure(shortValidity)
			gate := openGate()
			gate.refuseAll(v1alpha1.ReasonDisruptionsPaused)
			x.Gate = gate
			x.enableSigning(shortValidity)
			version := x.getNode().ResourceVersion
			w := clusterFaults{trial: x, random: rand.New(rand.NewPCG(seed, 0)), host: h} // Identical in each run of the test.
			renewals, end := 0, noon.Add(time.Duration(days)*24*time.Hour)
			for passes := 0; x.clock.Now().Before(end); passes++ {
				w.injectFault()
				before := x.getInstance().Status.Certificates[0]
				start := x.clock.Now()
				instance, after := x.reconcile()
				expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
				now := instance.Status.Certificates[0]
				if !start.Before(before.NotAfter.Time) {
					t.Fatalf("at %s it has expired at %s", start, before.NotAfter)
				}
				if now.NotAfter != before.NotAfter {
					renewals++
					if start.Before(before.RenewAt.Time) {
						t.Errorf("renewal %d at %s was due at %s", renewals, start, before.RenewAt)
					}
					if got := h.currentCertificate(identity); got == nil || !got.NotAfter.Equal(now.NotAfter.Time) ||
						got.NotAfter.Sub(got.NotBefore) > shortValidity+5*time.Minute {
						t.Fatalf("renewal %d: the host has %+v", renewals, got)
					}
				}
				if after <= 0 || after > shortValidity || passes > 5000 {
					t.Fatalf("look %d: the next one is after %s", passes, after)
				}
				if renewals < 2 { // until the Node has the host key of the first contact
					version = x.getNode().ResourceVersion
				}
				x.clock.Step(after)
			}
			if least, most := days*24/48, days*24/33; renewals < least || renewals > most {
				t.Errorf("%d renewals, not %d to %d", renewals, least, most)
			}
			if h.countLogins() != renewals {
				t.Errorf("%d connections for %d renewals", h.countLogins(), renewals)
			}
			if len(gate.requests) > 0 || x.getNode().ResourceVersion != version {
				t.Errorf("the gate was asked: %v; the Node was changed: %t", gate.requests, x.getNode().ResourceVersion != version)
			}
		})
	}
}

func TestRotation_RenewalsAreSpread(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	noted := []v1alpha1.CertificateStatus{certificateStatus(nodespec.ServiceCloudNodeManager, noon, noon.Add(shortValidity))}
	var intervals []time.Duration
	for range 1000 {
		due, next := identity.Due(noted, noon, random.Float64())
		if len(due) > 0 {
			t.Fatalf("due are %q", due)
		}
		intervals = append(intervals, next)
	}
	slices.Sort(intervals)
	if first, last := intervals[0], intervals[len(intervals)-1]; first < shortValidity*3/4 || last > shortValidity*85/100 {
		t.Errorf("the first look is after %s and the last after %s", first, last)
	}
	// The checks are spread over 4.8 hours: 35 on average.
	first, most := 0, 0
	for last := range intervals {
		for intervals[last]-intervals[first] > 10*time.Minute {
			first++
		}
		most = max(most, last-first+1)
	}
	if most > 80 {
		t.Errorf("%d of them within ten minutes", most)
	}
}

//
func TestRotation_RenewsDueCertificateAfterOutage(t *testing.T) {
	x := newTrial(t)
	h, identity := x.onAzure(shortValidity)
	x.enableSigning(shortValidity)
	x.clock.Step(shortValidity * 9 / 10)
	x.reconcile()
	if got := h.currentCertificate(identity); h.countLogins() != 1 || got == nil ||
		!x.clock.Now().Add(shortValidity/2).Before(got.NotAfter) {
		t.Errorf("%d connections; the host has %+v", h.countLogins(), got)
	}
}

// The name of a Node does not prove that the Node belongs to the instance. A certificate signed for the Node of
// another machine would grant its rights.
func TestRotation_NotRenewedForForeignNode(t *testing.T) {
	x := newTrial(t)
	x.onAzure(shortValidity)
	x.changeStatus(func(status *v1alpha1.WindowsInstanceStatus) { // the instance was not recreated
		status.HostKey = &v1alpha1.HostKey{Type: "ssh-ed25519", Key: encodeKey(x.host.hostKey.PublicKey())}
	})
	signed := x.enableSigning(month)
	node := x.getNode()
	if err := x.Client.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.ResourceVersion, node.UID = "", "of-another"
	if err := x.Client.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	x.untilDue()
	x.reconcile()
	if x.countDials() > 0 || len(signed) > 0 {
		t.Errorf("%d connections, signed %v", x.countDials(), signed)
	}
}
