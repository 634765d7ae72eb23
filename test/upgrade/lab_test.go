// Package upgrade verifies the guarantees of the operator for nodes in service end to end. Nodes are upgraded,
// restarted and drained one after the other, within the budget of the WindowsDisruptionPolicy, in spite of all faults
// of the operator. The tests run on the real control plane with the RBAC rules of deploy/. Windows hosts and
// workloads are simulated.
package upgrade

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

// Platforms of the shared control planes: one with Machines, one without.
const (
	withMachines    = "AWS"
	withoutMachines = "None"
)

// sides is the number of concurrent tests on each platform.
const sides = 2

// controlPlanes holds the unused control planes of each platform. Each starts at its first use by a test.
var controlPlanes = map[string]chan *clustertest.Shared{}

func init() {
	for _, platform := range []string{withMachines, withoutMachines} {
		controlPlanes[platform] = make(chan *clustertest.Shared, sides)
		for range sides {
			controlPlanes[platform] <- clustertest.New(cluster.Options{
				Profile: cluster.OpenShift, Platform: platform, APIIntURL: "https://127.0.0.1", Audit: true,
			})
		}
	}
}

func TestMain(m *testing.M) {
	cleanups := []func() int{removeReleases}
	for _, free := range controlPlanes {
		for range sides {
			cleanups = append(cleanups, func() int { return (<-free).Stop() })
		}
	}
	os.Exit(e2e.Main(m, cleanups...))
}

// The maximum time for a complete fleet is fleetTimeout.
const (
	waitTimeout  = e2e.WaitTimeout
	fleetTimeout = 10 * time.Minute
)

// lab is an environment with a test.
type lab struct {
	*testing.T
	*testenv.Environment
}

// start boots a lab on a control plane of a platform that no other test uses meanwhile, and installs the operator
// with its key.
func start(t *testing.T, name string, options testenv.Options) lab {
	t.Helper()
	t.Parallel()
	plane := <-controlPlanes[name]
	t.Cleanup(func() { controlPlanes[name] <- plane })
	first := releaseByName(t, initial)
	options.Cluster, options.PayloadDir, options.Version = plane.Cluster(t), first.PayloadDirectory, first.Version
	options.MachineAPI = name == withMachines
	r := e2e.Boot(t, options)
	e2e.Install(t, r)
	return lab{t, r}
}

// forSubtest returns the lab for a subtest.
func (l lab) forSubtest(t *testing.T) lab { return lab{t, l.Environment} }

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

// awaitCondition waits until the condition holds, checked after each change of the watched kind.
func (l lab) awaitCondition(what string, watched client.Object, condition func(ctx context.Context,
	reader client.Reader) (bool, error)) {
	l.Helper()
	l.runWithTimeout(waitTimeout, func(ctx context.Context) error { return l.WaitFor(ctx, what, watched, condition) })
}

// startOperator starts an operator of a release.
func (l lab) startOperator(name string, adjust ...func(*operator.Config)) *testenv.Operator {
	l.Helper()
	o, err := l.RunOperator(append([]func(*operator.Config){testenv.WithRelease(releaseByName(l.T, name).Release)}, adjust...)...)
	l.requireNoError(err)
	return o
}

// upgradeOperator ends an operator and starts an operator of another release, as OLM does.
func (l lab) upgradeOperator(o *testenv.Operator, name string) *testenv.Operator {
	l.Helper()
	l.requireNoError(o.Stop())
	return l.startOperator(name)
}

// changePolicy changes the spec of the WindowsDisruptionPolicy, which is created if necessary.
func (l lab) changePolicy(change func(*v1alpha1.WindowsDisruptionPolicySpec)) {
	l.Helper()
	for {
		p := l.getPolicy()
		existed := p.ResourceVersion != ""
		change(&p.Spec)
		var err error
		if existed {
			err = l.Client.Update(l.Context(), p)
		} else {
			err = l.Client.Create(l.Context(), p)
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			l.requireNoError(err)
			return
		}
	}
}

// getPolicy returns the current WindowsDisruptionPolicy, or a new one.
func (l lab) getPolicy() *v1alpha1.WindowsDisruptionPolicy {
	l.Helper()
	p := &v1alpha1.WindowsDisruptionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace(),
		Name: v1alpha1.DisruptionPolicyName}}
	err := l.Client.Get(l.Context(), client.ObjectKeyFromObject(p), p)
	l.requireNoError(client.IgnoreNotFound(err))
	return p
}

// waitForPolicy waits until the WindowsDisruptionPolicy meets the condition.
func (l lab) waitForPolicy(what string, condition func(*v1alpha1.WindowsDisruptionPolicy) bool) {
	l.Helper()
	key := client.ObjectKey{Namespace: l.Namespace(), Name: v1alpha1.DisruptionPolicyName}
	l.awaitCondition("the policy "+what, &v1alpha1.WindowsDisruptionPolicy{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			p := &v1alpha1.WindowsDisruptionPolicy{}
			err := reader.Get(ctx, key, p)
			return err == nil && condition(p), client.IgnoreNotFound(err)
		})
}

// nodeOf returns the current Node of a host.
func (l lab) nodeOf(host string) *corev1.Node {
	l.Helper()
	node := &corev1.Node{}
	l.requireNoError(l.Client.Get(l.Context(), client.ObjectKey{Name: host}, node))
	return node
}

// windowsNodes returns the Windows nodes that a reader lists.
func windowsNodes(ctx context.Context, reader client.Reader) ([]corev1.Node, error) {
	var nodes corev1.NodeList
	err := reader.List(ctx, &nodes, client.MatchingLabels{corev1.LabelOSStable: "windows"})
	return nodes.Items, err
}

// waitUntilUpgraded waits until the given number of Windows nodes, without the excepted ones, are in service with a
// release, and no node is disrupted any more.
func (l lab) waitUntilUpgraded(name string, nodes int, limit time.Duration, except ...string) {
	l.Helper()
	want := releaseByName(l.T, name)
	l.runWithTimeout(limit, func(ctx context.Context) error {
		return l.WaitFor(ctx, fmt.Sprintf("%d nodes to be of version %s", nodes, want.Version), &corev1.Node{},
			func(ctx context.Context, reader client.Reader) (bool, error) {
				all, err := windowsNodes(ctx, reader)
				n := 0
				for i := range all {
					if slices.Contains(except, all[i].Name) {
						continue
					}
					n++
					if all[i].Annotations["windowsmachineconfig.openshift.io/version"] != want.Version || !isInService(&all[i]) ||
						all[i].Status.NodeInfo.KubeletVersion != want.kubelet {
						return false, err
					}
				}
				return n == nodes, err
			})
	})
	l.waitForPolicy("to have nothing that is disturbed", func(p *v1alpha1.WindowsDisruptionPolicy) bool {
		return len(p.Status.Disruptions) == 0
	})
}

// isInService reports whether a node is schedulable.
func isInService(node *corev1.Node) bool {
	return isNodeReady(node) && !node.Spec.Unschedulable &&
		!slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.TaintNotReady })
}

func isNodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// waitForInstance waits until the instance of a host, by computer name, meets the condition.
func (l lab) waitForInstance(host, what string, condition func(*v1alpha1.WindowsInstance) bool) {
	l.Helper()
	l.runWithTimeout(waitTimeout, func(ctx context.Context) error {
		return l.WaitForInstance(ctx, l.Host(host), what, func(i *v1alpha1.WindowsInstance) bool {
			return i != nil && condition(i)
		})
	})
}

// waitForFalse waits until a condition of a host's instance is False for a reason, and returns the message.
func (l lab) waitForFalse(host, condition, reason string) (message string) {
	l.Helper()
	l.waitForInstance(host, "to say "+condition+"="+reason, func(i *v1alpha1.WindowsInstance) bool {
		c := meta.FindStatusCondition(i.Status.Conditions, condition)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != reason {
			return false
		}
		message = c.Message
		return true
	})
	return message
}

// setAnnotation sets an annotation, as kubectl annotate does.
func (l lab) setAnnotation(object client.Object, name, value string) {
	l.Helper()
	patch := client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"`+name+`":"`+value+`"}}}`))
	l.requireNoError(l.Client.Patch(l.Context(), object, patch))
}

// waitForAnyInstance waits until an instance meets the condition.
func (l lab) waitForAnyInstance(what string, limit time.Duration, condition func(*v1alpha1.WindowsInstance) bool) {
	l.Helper()
	l.runWithTimeout(limit, func(ctx context.Context) error {
		return l.WaitFor(ctx, "an instance "+what, &v1alpha1.WindowsInstance{},
			func(ctx context.Context, reader client.Reader) (bool, error) {
				var list v1alpha1.WindowsInstanceList
				err := reader.List(ctx, &list, client.InNamespace(l.Namespace()))
				for i := range list.Items {
					if condition(&list.Items[i]) {
						return true, err
					}
				}
				return false, err
			})
	})
}
