// Package certificates verifies end to end that the certificates of kubelets, kubelet servers and
// cloud-node-manager are renewed in time. It uses the real certificate managers of client-go and the real control
// plane, where only the operator approves requests for Windows nodes. The tests mostly wait.
package certificates

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/fakeopenshift"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

// shared is a control plane that neither approves nor signs any request.
var shared = clustertest.New(cluster.Options{
	Profile: cluster.OpenShift, Platform: "Azure", APIIntURL: "https://127.0.0.1", ExternalSigner: true,
	NoRenewalApproval: true,
})

var files = e2e.NewPayload("", payload.Options{SizePercent: 5})

func TestMain(m *testing.M) { os.Exit(e2e.Main(m, shared.Stop, files.Remove)) }

const waitTimeout = e2e.WaitTimeout

// lab is an environment with a signer and a test.
type lab struct {
	*testing.T
	*testenv.Environment
	signer *fakeopenshift.Signer
}

// newLab boots a lab with listed hosts and an installed operator that does not run. The function determines the
// validity of each certificate.
func newLab(t *testing.T, hosts int, validity func(user string, now time.Time) fakeopenshift.Validity) lab {
	t.Helper()
	c := shared.Cluster(t)
	r := e2e.Boot(t, testenv.Options{Cluster: c, Hosts: testenv.Hosts(hosts), PayloadDir: files.Directory(t)})
	l := lab{T: t, Environment: r}
	authority, err := c.CSRSigner()
	l.requireNoError(err)
	l.signer = fakeopenshift.NewSigner(authority, clock.RealClock{}, validity)
	signing, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- l.signer.Run(signing, c.Config, slog.New(logr.ToSlogHandler(ctrl.Log))) }()
	l.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	e2e.Install(t, r)
	l.requireNoError(r.ListHosts(t.Context()))
	return l
}

func (l lab) startOperator() *testenv.Operator {
	l.Helper()
	o, err := l.RunOperator()
	l.requireNoError(err)
	return o
}

// requireNoError ends the test when a step outside the subject of the test fails.
func (l lab) requireNoError(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// runWithTimeout runs a wait with a time limit.
func (l lab) runWithTimeout(limit time.Duration, wait func(ctx context.Context) error) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), limit)
	defer cancel()
	l.requireNoError(wait(ctx))
}

// waitUntil waits until a condition holds that has no object to watch.
func (l lab) waitUntil(limit time.Duration, what string, holds func() bool) {
	l.Helper()
	l.runWithTimeout(limit, func(ctx context.Context) error {
		for !holds() {
			select {
			case <-ctx.Done():
				return fmt.Errorf("wait for %s: %w; signed were:\n%s", what, ctx.Err(), l.formatSigned())
			case <-time.After(100 * time.Millisecond):
			}
		}
		return nil
	})
}

// formatSigned returns the signed certificates, one per line.
func (l lab) formatSigned() string {
	var b strings.Builder
	for _, c := range l.signer.Signed() {
		fmt.Fprintf(&b, "%s %s for %s, asked by %s: %s to %s\n", c.At.Format("15:04:05.000"), c.SignerName,
			c.User, c.Requester,
			c.Leaf.NotBefore.Format("15:04:05"), c.Leaf.NotAfter.Format("15:04:05"))
	}
	return b.String()
}

// waitForEvent waits for an event with the reason and the text.
func (l lab) waitForEvent(reason, text string) {
	l.Helper()
	l.runWithTimeout(waitTimeout, func(ctx context.Context) error {
		return l.WaitFor(ctx, "event "+reason, &eventsv1.Event{},
			func(ctx context.Context, reader client.Reader) (bool, error) {
				var list eventsv1.EventList
				if err := reader.List(ctx, &list); err != nil {
					return false, err
				}
				for _, e := range list.Items {
					if e.Reason == reason && strings.Contains(e.Note, text) {
						return true, nil
					}
				}
				return false, nil
			})
	})
}
