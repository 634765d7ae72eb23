package instance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// agentLife is how long the agent's certificate is good for.
var agentLife = nodespec.Identity{Name: nodespec.ServiceAgent}.Life()

// weather is what comes over a cluster in the course of a month.
type weather struct {
	*trial
	dice *rand.Rand
	host *agentHost
	// next is when something happens again: never before what has happened last is over.
	next time.Time
}

// strike lets something happen when it is time.
func (w *weather) strike() {
	if w.clock.Now().Before(w.next) {
		return
	}
	w.host.off = false
	lasts := w.minutes(180)
	switch w.dice.IntN(5) {
	case 0: // another operator takes over
		w.sessions = sessions{}
	case 1:
		w.host.off = true
		w.next = w.clock.Now().Add(lasts)
		return
	case 2: // the clock is set forward
		w.clock.Step(w.minutes(60))
	case 3: // the clock is set back
		w.clock.SetTime(w.clock.Now().Add(-w.minutes(60)))
	case 4: // no operator runs
		w.sessions = sessions{}
		w.clock.Step(lasts)
	}
	w.next = w.clock.Now().Add(w.minutes(12 * 60))
}

func (w *weather) minutes(most int) time.Duration {
	return time.Duration(1+w.dice.IntN(most)) * time.Minute
}

// Thirty days of restarts of the operator, hosts that are away and clocks that are set: the agent's certificate never expires, is renewed once
// for each of its lives and not before its time, and nobody connects to the host for anything else.
func TestTheAgentsCertificateIsKeptGoodForAMonth(t *testing.T) {
	if agentLife != 48*time.Hour {
		t.Fatalf("it is asked for for %s", agentLife)
	}
	months, days := uint64(3), 30
	if testing.Short() {
		months, days = 1, 6
	}
	for seed := range months {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			x := newTrial(t)
			h, identity := x.withCertificate(nodespec.ServiceAgent, agentLife)
			gate := openGate()
			gate.shut(v1alpha1.ReasonPolicyPaused)
			x.Gate = gate
			x.signs(month) // more than is asked for
			version := x.node().ResourceVersion
			w := weather{trial: x, dice: rand.New(rand.NewPCG(seed, 0)), host: h} // The same for each run of the test.
			renewals, end := 0, noon.Add(time.Duration(days)*24*time.Hour)
			for passes := 0; x.clock.Now().Before(end); passes++ {
				w.strike()
				before := x.instance().Status.Certificates[0]
				began := x.clock.Now()
				instance, after := x.reconcile()
				expect(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
				now := instance.Status.Certificates[0]
				if !began.Before(before.NotAfter.Time) {
					t.Fatalf("at %s it has expired at %s", began, before.NotAfter)
				}
				if now.NotAfter != before.NotAfter {
					renewals++
					if began.Before(before.RenewAt.Time) {
						t.Errorf("renewal %d at %s was due at %s", renewals, began, before.RenewAt)
					}
					if got := h.certificate(identity); got == nil || !got.NotAfter.Equal(now.NotAfter.Time) || got.NotAfter.Sub(got.NotBefore) > agentLife+5*time.Minute {
						t.Fatalf("renewal %d: the host has %+v", renewals, got)
					}
				}
				if after <= 0 || after > longestSleep || passes > 5000 {
					t.Fatalf("look %d: the next one is after %s", passes, after)
				}
				x.clock.Step(after)
			}
			if least, most := days*24/48, days*24/33; renewals < least || renewals > most {
				t.Errorf("%d renewals, not %d to %d", renewals, least, most)
			}
			if h.logins() != renewals {
				t.Errorf("%d connections for %d renewals", h.logins(), renewals)
			}
			if len(gate.asked) > 0 || x.node().ResourceVersion != version {
				t.Errorf("the gate was asked: %v; the Node was changed: %t", gate.asked, x.node().ResourceVersion != version)
			}
		})
	}
}

// fleet are certificates of a thousand hosts that were joined at once.
func fleet() []v1alpha1.CertificateStatus {
	var certificates []v1alpha1.CertificateStatus
	for i := range 1000 {
		certificates = append(certificates, certificateStatus(fmt.Sprintf("winworker-%05d", i), nodespec.ServiceAgent, noon, noon.Add(agentLife)))
	}
	return certificates
}

// crowd is the greatest number of times that lie within so long of each other.
func crowd(times []time.Time, within time.Duration) int {
	slices.SortFunc(times, time.Time.Compare)
	most, first := 0, 0
	for last := range times {
		for times[last].Sub(times[first]) > within {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

func TestAThousandHostsAreNotRenewedAtOnce(t *testing.T) {
	certificates := fleet()
	t.Run("when their certificates were issued at once", func(t *testing.T) {
		var due []time.Time
		for _, certificate := range certificates {
			due = append(due, certificate.RenewAt.Time)
		}
		// They are spread over 7.2 hours: 23 on average.
		if got := crowd(due, 10*time.Minute); got > 60 {
			t.Errorf("%d of them within ten minutes", got)
		}
		if first, last := due[0].Sub(noon), due[len(due)-1].Sub(noon); first < agentLife*7/10-time.Second || last > agentLife*85/100 {
			t.Errorf("the first is due after %s and the last after %s", first, last)
		}
	})
	t.Run("nor when the operator was away until all were due", func(t *testing.T) {
		now := noon.Add(agentLife * 9 / 10)
		var attempts []time.Time
		for i, certificate := range certificates {
			delay := catchUpDelay(fmt.Sprintf("winworker-%05d", i), []v1alpha1.CertificateStatus{certificate}, now)
			if delay < 0 || delay > catchUp {
				t.Fatalf("it waits %s", delay)
			}
			attempts = append(attempts, now.Add(delay))
		}
		if got := crowd(attempts, time.Minute); got > 150 {
			t.Errorf("%d of them within a minute", got)
		}
	})
	t.Run("but one that has little time left does not wait for the others", func(t *testing.T) {
		for _, left := range []time.Duration{time.Minute, time.Second, 0, -time.Hour} {
			now := certificates[7].NotAfter.Add(-left)
			if delay := catchUpDelay("winworker-00007", certificates[7:8], now); delay < 0 || delay > max(left, 0)/2 {
				t.Errorf("with %s left it waits %s", left, delay)
			}
		}
	})
	t.Run("and one that is due now is renewed now", func(t *testing.T) {
		for _, late := range []time.Duration{-time.Hour, 0, time.Minute} {
			if delay := catchUpDelay("winworker-00007", certificates[7:8], certificates[7].RenewAt.Add(late)); delay != 0 {
				t.Errorf("%s late it waits %s", late, delay)
			}
		}
	})
}

//
func TestAnOperatorThatWasAwayTakesItsTimeOnceAndThenRenews(t *testing.T) {
	x := newTrial(t)
	h, identity := x.withCertificate(nodespec.ServiceAgent, agentLife)
	x.signs(month)
	x.clock.Step(agentLife * 9 / 10)
	_, after := x.reconcile()
	if h.logins() > 0 || after <= 0 || after > catchUp {
		t.Fatalf("%d connections, the next look after %s", h.logins(), after)
	}
	x.clock.Step(after / 2)
	if _, rest := x.reconcile(); h.logins() > 0 || rest != after-after/2 { // something else has happened
		t.Errorf("%d connections; after half of %s it waits %s more", h.logins(), after, rest)
	}
	x.clock.Step(after - after/2)
	x.reconcile()
	if got := h.certificate(identity); h.logins() != 1 || got == nil || !x.clock.Now().Before(got.NotAfter) {
		t.Errorf("%d connections; the host has %+v", h.logins(), got)
	}
}

// The name that a Node has is no proof that it is the instance's: what is signed for another machine's Node gives its rights away.
func TestACertificateIsNotRenewedForTheNodeOfAnother(t *testing.T) {
	x := newTrial(t)
	x.withCertificate(nodespec.ServiceAgent, agentLife)
	x.changeStatus(func(status *v1alpha1.WindowsInstanceStatus) { // it was not deleted and made again
		status.HostKey = &v1alpha1.HostKey{Type: "ssh-ed25519", Key: encoded(x.host.hostKey.PublicKey())}
	})
	signed := x.signs(month)
	node := x.node()
	if err := x.Client.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.ResourceVersion, node.UID = "", "of-another"
	if err := x.Client.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	x.untilDue()
	x.reconcile()
	if x.dials > 0 || len(signed) > 0 {
		t.Errorf("%d connections, signed %v", x.dials, signed)
	}
}
