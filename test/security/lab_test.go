// Package security attacks the operator end to end, on the real control plane with the RBAC rules of deploy/. The
// attackers are a compromised host, a thief of a node's certificates, and a user with write access to ConfigMaps.
// The attacks are described in docs/security.md.
package security

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

var shared = clustertest.New(cluster.Options{Profile: cluster.OpenShift, APIIntURL: "https://127.0.0.1", Audit: true})

// files provides a payload of small files, which are sufficient for the attacks.
var files = e2e.NewPayload("", payload.Options{SizePercent: 5})

func TestMain(m *testing.M) { os.Exit(e2e.Main(m, shared.Stop, files.Remove)) }

const waitTimeout = e2e.WaitTimeout

type reader = client.Reader

// lab is an environment with a test.
type lab struct {
	*testing.T
	*testenv.Environment
}

// runSubtest runs a subtest in the same lab.
func (l lab) runSubtest(name string, run func(lab)) {
	l.Helper()
	l.Run(name, func(t *testing.T) { run(lab{t, l.Environment}) })
}

// newInstalledLab boots a lab with an installed operator that does not run yet.
func newInstalledLab(t *testing.T, options testenv.Options) lab {
	t.Helper()
	options.Cluster, options.PayloadDir = shared.Cluster(t), files.Directory(t)
	r := e2e.Boot(t, options)
	e2e.Install(t, r)
	return lab{t, r}
}

func (l lab) startOperator(adjust ...func(*operator.Config)) *testenv.Operator {
	l.Helper()
	o, err := l.RunOperator(adjust...)
	l.requireNoError(err)
	return o
}

// list writes hosts into windows-instances, or all hosts when none is named.
func (l lab) list(names ...string) {
	l.Helper()
	l.requireNoError(l.ListHosts(l.Context(), names...))
}

// waitUntilReady waits until hosts are Ready.
func (l lab) waitUntilReady(names ...string) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), waitTimeout)
	defer cancel()
	l.requireNoError(l.WaitReady(ctx, names...))
}

// cleanupContext returns a context for cleanup after the end of the test's context.
func (l lab) cleanupContext() context.Context { return context.WithoutCancel(l.Context()) }

// requireNoError ends the test when a step outside the subject of the test fails.
func (l lab) requireNoError(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// awaitCondition waits until the condition holds, checked after each change of the watched kind.
func (l lab) awaitCondition(what string, watched client.Object, condition func(ctx context.Context,
	reader reader) (bool, error)) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), waitTimeout)
	defer cancel()
	l.requireNoError(l.WaitFor(ctx, what, watched, condition))
}

// waitForCondition waits until a condition of the host's instance is not True for one of the reasons, and returns the
// condition.
func (l lab) waitForCondition(name string, reasons ...string) metav1.Condition {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), waitTimeout)
	defer cancel()
	var found metav1.Condition
	l.requireNoError(l.WaitForInstance(ctx, l.Host(name), "to say "+strings.Join(reasons, " or "),
		func(instance *v1alpha1.WindowsInstance) bool {
			if instance == nil {
				return false
			}
			i := slices.IndexFunc(instance.Status.Conditions, func(c metav1.Condition) bool {
				return c.Status != metav1.ConditionTrue && slices.Contains(reasons, c.Reason)
			})
			if i >= 0 {
				found = instance.Status.Conditions[i]
			}
			return i >= 0
		}))
	return found
}

// getInstance returns the current instance of a host.
func (l lab) getInstance(name string) *v1alpha1.WindowsInstance {
	l.Helper()
	instance, err := l.Instance(l.Context(), name)
	l.requireNoError(err)
	if instance == nil {
		l.Fatalf("host %s has no instance", name)
	}
	return instance
}

// getNode returns the current Node.
func (l lab) getNode(name string) *corev1.Node {
	l.Helper()
	node := &corev1.Node{}
	l.requireNoError(l.Client.Get(l.Context(), client.ObjectKey{Name: name}, node))
	return node
}

// waitForEvent waits for an event with the reason and with the text in its note.
func (l lab) waitForEvent(reason, text string) {
	l.Helper()
	l.awaitCondition("an event "+reason+" with "+text, &eventsv1.Event{},
		func(ctx context.Context, reader reader) (bool, error) {
			var list eventsv1.EventList
			err := reader.List(ctx, &list)
			return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
				return e.Reason == reason && strings.Contains(e.Note, text)
			}), err
		})
}
