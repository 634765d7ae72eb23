package certificates

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/fakeopenshift"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

const (
	halfAnHour = 30 * time.Minute
	// shortCertificateTTL is the validity of certificates that must expire before their host is back.
	shortCertificateTTL = 75 * time.Second
	// stoppedHost is the host that is off for longer than shortCertificateTTL.
	stoppedHost = "instance-3"
)

const kubeletPKI = `C:\var\lib\kubelet\pki`

// holding describes a certificate on a host that the kubelet or the operator renews.
type holding struct{ name, user, signer, link string }

// holdingsOf returns the certificates on a host.
func holdingsOf(h *testenv.Host) []holding {
	node := "system:node:" + h.NodeName()
	list := []holding{
		{"the kubelet's client certificate", node, certificatesv1.KubeAPIServerClientKubeletSignerName,
			kubeletPKI + `\kubelet-client-current.pem`},
		{"the kubelet's serving certificate", node, certificatesv1.KubeletServingSignerName,
			kubeletPKI + `\kubelet-server-current.pem`},
	}
	for _, line := range nodespec.IdentityTable() {
		if line.Service == nodespec.ServiceCloudNodeManager {
			identity := nodespec.Identity{Name: line.Service, Directory: line.Directory}
			list = append(list, holding{
				"cloud-node-manager's certificate", managerPrefix + h.NodeName(), certificatesv1.KubeAPIServerClientSignerName,
				identity.Path(nodespec.CurrentCertificate),
			})
		}
	}
	return list
}

// managerPrefix is the prefix of cloud-node-manager's user name on a node. The operator requests this certificate.
const managerPrefix = "system:cloud-node-manager:"

// managerCertificateTTL is the validity of cloud-node-manager's certificates. The operator renews them at 75 percent
// of the validity, which must not be before the operator is killed, even on a busy machine. The next operator would
// continue a renewal that has begun, and renew again.
const managerCertificateTTL = 5 * time.Minute

// expiringValidity issues certificates that are due for renewal within two minutes. Since client-go renews at 70 to 90
// percent of the validity, some are renewed at once, and again until their nodes are Ready. Certificates of
// cloud-node-manager are due later, and certificates of the host that will be away are valid for a short time.
func expiringValidity(user string, now time.Time) fakeopenshift.Validity {
	switch {
	case strings.HasPrefix(user, "system:ovn-node:"):
		return fakeopenshift.Validity{NotBefore: now, NotAfter: now.Add(24 * time.Hour)} // not tested here
	case strings.HasSuffix(user, ":"+stoppedHost):
		return fakeopenshift.Validity{NotBefore: now, NotAfter: now.Add(shortCertificateTTL)}
	case strings.HasPrefix(user, managerPrefix):
		return fakeopenshift.Validity{NotBefore: now, NotAfter: now.Add(managerCertificateTTL)}
	}
	notBefore := now.Add(-25 * time.Minute)
	return fakeopenshift.Validity{NotBefore: notBefore, NotAfter: notBefore.Add(halfAnHour)}
}

func fullValidity(_ string, now time.Time) fakeopenshift.Validity {
	return fakeopenshift.Validity{NotBefore: now, NotAfter: now.Add(halfAnHour)}
}

// Two nodes serve while all their certificates are due and no operator runs. Another operator finds the requests
// and approves them; the controller manager's approver is off. Meanwhile a third host, like the operator, is off
// for longer than its certificates are valid. Both return, and the node is Ready again.
func TestCertificates_RenewedWithoutInterruption(t *testing.T) {
	l := newLab(t, 3, expiringValidity)
	first := l.startOperator()
	l.runWithTimeout(waitTimeout, func(ctx context.Context) error { return l.WaitReady(ctx) })
	staying := []*testenv.Host{l.Host("instance-1"), l.Host("instance-2")}
	var witnesses []*witness
	for _, h := range staying {
		witnesses = append(witnesses, l.watchNode(h))
	}
	availability, err := l.WatchAvailability(l.Context(), testenv.AvailabilityOptions{Except: []string{stoppedHost}})
	l.requireNoError(err)
	l.Cleanup(availability.Stop)
	lost := l.Host(stoppedHost)
	uid := l.nodeOf(lost).UID

	l.awaitManagers(staying)
	first.Kill()
	lost.Machine().PowerOff()
	l.awaitSigned()
	mark := time.Now()
	l.checkNoneBegan(staying)
	l.signer.SetValidity(fullValidity)
	journals := map[*testenv.Host]int{}
	for _, h := range staying {
		journals[h] = len(h.Machine().Journal().Entries(nil))
	}

	l.awaitRequests(staying)
	l.awaitExpiry(lost)
	l.startOperator()
	l.requireNoError(lost.Machine().Boot(l.Context()))

	for _, h := range staying {
		for _, held := range holdingsOf(h) {
			l.waitUntil(managerCertificateTTL, held.name+" of "+h.Options.Name+" to be renewed", func() bool {
				renewed := l.renewalsSince(mark, held)
				got := inUse(h, held.link)
				return len(renewed) > 0 && got != nil && got.Equal(renewed[0].Leaf)
			})
		}
	}
	l.runWithTimeout(4*time.Minute, func(ctx context.Context) error {
		return l.WaitFor(ctx, "the node of "+stoppedHost+" to be Ready again", &corev1.Node{},
			func(ctx context.Context, reader client.Reader) (bool, error) {
				node := &corev1.Node{}
				err := reader.Get(ctx, client.ObjectKey{Name: lost.NodeName()}, node)
				return err == nil && isReady(node) && isGood(lost, holdingsOf(lost)[0]), err
			})
	})
	l.runWithTimeout(waitTimeout, func(ctx context.Context) error { return l.WaitReady(ctx) })

	for i, h := range staying {
		l.checkRenewedOnce(h, mark)
		l.checkUndisrupted(h, journals[h])
		l.checkServed(h, witnesses[i])
	}
	l.checkAlwaysReady(availability)
	l.checkReturned(lost, uid)
}

// awaitManagers waits until cloud-node-manager has certificates on all hosts.
func (l lab) awaitManagers(hosts []*testenv.Host) {
	l.Helper()
	for _, h := range hosts {
		held := holdingsOf(h)[2]
		l.waitUntil(waitTimeout, held.name+" of "+h.Options.Name, func() bool { return isGood(h, held) })
	}
}

// checkNoneBegan checks that no certificate of cloud-node-manager was due before the operator was killed. Otherwise
// the test would be invalid.
func (l lab) checkNoneBegan(hosts []*testenv.Host) {
	l.Helper()
	for _, h := range hosts {
		leaf := inUse(h, holdingsOf(h)[2].link)
		if age := time.Since(leaf.NotBefore); age > managerCertificateTTL*3/4 {
			l.Fatalf("cloud-node-manager's certificate of %s was due before the nodes were Ready, which took %s; the machine is too busy", h.Options.Name, age)
		}
	}
}

// awaitSigned waits until all approved requests are signed.
func (l lab) awaitSigned() {
	l.Helper()
	l.runWithTimeout(waitTimeout, func(ctx context.Context) error {
		return l.WaitFor(ctx, "what was approved to be signed", &certificatesv1.CertificateSigningRequest{},
			func(ctx context.Context, reader client.Reader) (bool, error) {
				var list certificatesv1.CertificateSigningRequestList
				err := reader.List(ctx, &list)
				return !slices.ContainsFunc(list.Items, func(request certificatesv1.CertificateSigningRequest) bool {
					approved := slices.ContainsFunc(request.Status.Conditions,
						func(c certificatesv1.CertificateSigningRequestCondition) bool {
							return c.Type == certificatesv1.CertificateApproved
						})
					return approved && len(request.Status.Certificate) == 0
				}), err
			})
	})
}

// awaitRequests waits until a kubelet requests a renewal, while no operator approves it.
func (l lab) awaitRequests(hosts []*testenv.Host) {
	l.Helper()
	l.runWithTimeout(150*time.Second, func(ctx context.Context) error {
		return l.WaitFor(ctx, "a renewal that waits", &certificatesv1.CertificateSigningRequest{},
			func(ctx context.Context, reader client.Reader) (bool, error) {
				var list certificatesv1.CertificateSigningRequestList
				if err := reader.List(ctx, &list); err != nil {
					return false, err
				}
				return slices.ContainsFunc(list.Items, func(request certificatesv1.CertificateSigningRequest) bool {
					return len(request.Status.Conditions) == 0 && slices.ContainsFunc(hosts, func(h *testenv.Host) bool {
						kubelets := holdingsOf(h)[:2]
						return slices.ContainsFunc(kubelets, func(held holding) bool {
							return request.Spec.Username == held.user && request.Spec.SignerName == held.signer
						})
					})
				}), nil
			})
	})
}

// awaitExpiry waits until all certificates of a host have expired.
func (l lab) awaitExpiry(h *testenv.Host) {
	l.Helper()
	l.waitUntil(shortCertificateTTL+waitTimeout, "the certificates of "+h.Options.Name+" to expire", func() bool {
		return !slices.ContainsFunc(holdingsOf(h), func(held holding) bool { return isGood(h, held) })
	})
}

// isGood reports whether a certificate on a host has not expired.
func isGood(h *testenv.Host, held holding) bool {
	got := inUse(h, held.link)
	return got != nil && time.Now().Before(got.NotAfter)
}

// renewalsSince returns the certificates for a holding that were signed since.
func (l lab) renewalsSince(since time.Time, held holding) []fakeopenshift.Signed {
	return slices.DeleteFunc(l.signer.Signed(), func(c fakeopenshift.Signed) bool {
		return c.User != held.user || c.SignerName != held.signer || c.At.Before(since)
	})
}

// checkRenewedOnce checks that each certificate was renewed once by the right client, and that the status lists
// cloud-node-manager's certificate.
func (l lab) checkRenewedOnce(h *testenv.Host, since time.Time) {
	l.Helper()
	for _, held := range holdingsOf(h) {
		renewed := l.renewalsSince(since, held)
		if len(renewed) != 1 {
			l.Errorf("%s of %s was renewed %d times:\n%s", held.name, h.Options.Name, len(renewed), l.formatSigned())
			continue
		}
		requester := held.user
		if held.signer == certificatesv1.KubeAPIServerClientSignerName { // copied over SSH
			requester = "system:serviceaccount:" + l.Namespace() + ":windows-machine-config-operator"
		}
		if renewed[0].Requester != requester {
			l.Errorf("%s of %s was asked for by %s", held.name, h.Options.Name, renewed[0].Requester)
		}
	}
	instance, err := l.Instance(l.Context(), h.Options.Name)
	l.requireNoError(err)
	manager := inUse(h, holdingsOf(h)[2].link)
	if !slices.ContainsFunc(instance.Status.Certificates, func(c v1alpha1.CertificateStatus) bool {
		return c.Name == nodespec.ServiceCloudNodeManager && c.NotAfter.Time.Equal(manager.NotAfter)
	}) {
		l.Errorf("the status of %s tells of %+v, and cloud-node-manager's certificate is good until %s", instance.Name,
			instance.Status.Certificates, manager.NotAfter)
	}
}

// checkUndisrupted checks that the only connection to the host was for cloud-node-manager's certificate, and that
// no service was changed.
func (l lab) checkUndisrupted(h *testenv.Host, since int) {
	l.Helper()
	logins := 0
	var verbs []string
	for _, entry := range h.Machine().Journal().Entries(nil)[since:] {
		switch entry.Kind {
		case winhost.KindLogin:
			logins++
		case winhost.KindCommand:
			if words := strings.Fields(entry.Detail); len(words) > 1 {
				verbs = append(verbs, words[1])
			}
		case fake.KindService, fake.KindReboot, fake.KindPower:
			l.Errorf("%s: %s %s", h.Options.Name, entry.Kind, entry.Detail)
		}
	}
	if logins != 1 || !slices.Equal(verbs, []string{"facts", "renew", "renew"}) {
		l.Errorf("%s: %d connections, and asked for was %q", h.Options.Name, logins, verbs)
	}
}

// checkServed checks that the kubelet always served with a valid certificate, and with a renewed certificate at the
// end.
func (l lab) checkServed(h *testenv.Host, w *witness) {
	l.Helper()
	failures, certificates := w.stopWatch()
	if len(failures) > 0 || certificates < 2 {
		l.Errorf("%s served with %d certificates; at times it did not:\n%s", h.Options.Name, certificates,
			strings.Join(failures, "\n"))
	}
}

// checkAlwaysReady checks that the nodes of the running hosts were Ready all the time.
func (l lab) checkAlwaysReady(availability *testenv.Availability) {
	l.Helper()
	l.runWithTimeout(waitTimeout, func(ctx context.Context) error {
		report, err := availability.Report(ctx)
		if err == nil && report.MaxUnavailable > 0 {
			l.Errorf("%d nodes were not available at a time:\n%s", report.MaxUnavailable, strings.Join(report.Timeline, "\n"))
		}
		return err
	})
}

// checkReturned checks that the host's node was not recreated, and that the reason for the absence was reported.
func (l lab) checkReturned(h *testenv.Host, uid types.UID) {
	l.Helper()
	if node := l.nodeOf(h); node.UID != uid {
		l.Errorf("the node of %s was made anew", h.Options.Name)
	}
	l.waitForEvent(v1alpha1.ReasonCertificateExpired, "was valid until")
	for _, held := range holdingsOf(h) {
		l.waitUntil(waitTimeout, held.name+" of "+h.Options.Name, func() bool { return isGood(h, held) })
	}
}

func (l lab) nodeOf(h *testenv.Host) *corev1.Node {
	l.Helper()
	node := &corev1.Node{}
	l.requireNoError(l.Client.Get(l.Context(), client.ObjectKey{Name: h.NodeName()}, node))
	return node
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
