package test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	labpayload "github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// dayTwo is a fleet that is upgraded and restarted under kills.
type dayTwo struct {
	*reaper
	next  testenv.Release   // desired release of the nodes in the end
	names []string          // the hosts under kills
	spare []string          // hosts that are upgraded under kills if boundaries are left
	ended map[string]string // last boot ID of a host with a requested restart
	// failed is the time of the last failed change of the node that is rolled back.
	failed metav1.Time
	// done waits until the operation under kills is complete.
	done func(ctx context.Context, names ...string) error
}

// The operator is killed at every boundary of an in-place upgrade and of a requested restart, and then replaced. In
// the end, each node is in service, no slot is held for it, and each host was restarted as often as requested.
//
func TestKill_OperatorReplacedDuringUpgradeAndRestart(t *testing.T) {
	controlPlane := parallelCluster(t)
	k := newReaper(t)
	k.gate = true
	first, next, bad := threeReleases(t)
	r := newInstalledRig(t, testenv.Options{
		Cluster: controlPlane, Hosts: testenv.Hosts(1 + 8 + 2), Clock: fastClock(t, k.hasWaiting),
		PayloadDir: first.PayloadDirectory, Version: first.Version,
	})
	t.Cleanup(k.releaseHosts)
	d := &dayTwo{reaper: k, next: next, ended: map[string]string{}}
	d.done = d.awaitInService
	for _, h := range r.Hosts() {
		k.attachHost(r, h)
		d.names = append(d.names, h.Options.Name)
	}
	reference := d.names[0]
	d.names, d.spare = d.names[1:9], d.names[9:]

	d.allowAllDisruptions()
	k.start()
	list(t, r)
	waitUntilReady(t, r)
	if err := k.current.operator.Stop(); err != nil {
		t.Fatal(err)
	}
	d.setPaused(true, d.names...)
	d.setPaused(true, d.spare...)
	k.release = &next
	upgrade := k.recordBoundaries(func() { d.awaitDone(reference) })
	maps.DeleteFunc(upgrade, func(label string, _ bool) bool { return isCertificateBoundary(label) })
	d.killDuring("upgrade", upgrade, 80, 0, func(names ...string) {
		d.setPaused(false, names...)
	}, d.names, d.spare[:1], d.spare[1:])
	restart := k.recordBoundaries(func() { d.requestRestart(reference); d.awaitDone(reference) })
	// After a boot, the agent's service starts the node without the operator. The remaining work of the operator's
	// command varies.
	maps.DeleteFunc(restart, func(label string, _ bool) bool {
		return isCertificateBoundary(label) || strings.Contains(label, "agent: apply")
	})
	d.killDuring("restart", restart, 15, 1, d.requestRestart, d.names, d.names, d.names)

	// The upgrade stops at a failed node, so only this node fails.
	d.setPaused(true, d.names...)
	d.setPaused(true, d.spare...)
	k.release = &bad
	d.done = d.awaitRolledBack
	rollBack := k.recordBoundaries(func() { d.awaitDone(reference) })
	// Attempts to apply the bad release vary, and have the flag --rollback-to.
	maps.DeleteFunc(rollBack, func(label string, _ bool) bool {
		return !strings.Contains(label, "agent: rollback") && !strings.Contains(label, nodespec.AgentProgram+" rollback") &&
			!strings.Contains(label, "failedChange")
	})
	failing := []string{reference}
	d.killDuring("way back", rollBack, 12, 0, d.requestRetry, failing, failing, failing)
}

// isCertificateBoundary reports whether a boundary belongs to the renewal of a certificate, which falls into an
// upgrade or a restart by chance: the clock is fast. The installation has these boundaries every time.
func isCertificateBoundary(label string) bool {
	return strings.Contains(label, "certificatesigningrequests")
}

// threeReleases returns a release of the operator, the next release with different programs, and a bad release with
// a kubelet that exits right after its start.
func threeReleases(t *testing.T) (first, next, bad testenv.Release) {
	t.Helper()
	var earlier []*payload.Payload
	releases := map[string]*testenv.Release{"v1.36.3": &first, "v1.36.4": &next, "v1.37.0": &bad}
	for i, kubelet := range slices.Sorted(maps.Keys(releases)) {
		options := labpayload.Options{SizePercent: 10, Versions: map[string]string{"kubelet": kubelet}, Earlier: earlier}
		if i == 0 {
			options.SizePercent = 20 // all programs differ from the next release
		}
		if i == 2 {
			options.Defects = map[string]labpayload.Defect{"kubelet": labpayload.DefectExits}
		}
		release := testenv.Release{Version: fmt.Sprintf("12.0.%d", i), PayloadDirectory: t.TempDir()}
		p, err := labpayload.Generate(release.PayloadDirectory, "", release.Version, options)
		if err != nil {
			t.Fatal(err)
		}
		*releases[kubelet], earlier = release, append(earlier, p)
	}
	return first, next, bad
}

// allowAllDisruptions creates a disruption policy that admits all nodes and does not time out while a node waits at a
// boundary.
func (k *reaper) allowAllDisruptions() {
	k.Helper()
	p := &v1alpha1.WindowsDisruptionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: k.env.Namespace(),
		Name: v1alpha1.DisruptionPolicyName}}
	p.Spec.MaxUnavailable = ptr.To(intstr.FromString("100%"))
	p.Spec.CanarySoak = &metav1.Duration{}
	p.Spec.FailureDeadline = &metav1.Duration{Duration: 12 * time.Hour}
	if err := k.env.Client.Create(k.Context(), p); err != nil {
		k.Fatal(err)
	}
}

// setPaused pauses or resumes the instances of hosts.
func (d *dayTwo) setPaused(paused bool, names ...string) {
	d.Helper()
	for _, name := range names {
		instance, err := d.env.Instance(d.Context(), name)
		if err != nil {
			d.Fatal(err)
		}
		after := instance.DeepCopy()
		after.Spec.Paused = paused
		if err := d.env.Client.Patch(d.Context(), after, client.MergeFrom(instance)); err != nil {
			d.Fatal(err)
		}
	}
}

func (d *dayTwo) requestRestart(names ...string) {
	d.Helper()
	for _, name := range names {
		d.ended[name] = d.env.Host(name).Machine().BootID()
		before := getNode(d.T, d.env, name)
		after := before.DeepCopy()
		after.Annotations[v1alpha1.AnnotationRebootRequired] = "patches"
		if err := d.env.Client.Patch(d.Context(), after, client.MergeFrom(before)); err != nil {
			d.Fatal(err)
		}
	}
}

// killDuring runs an operation under kills and checks that at least atLeast boundaries were visited. It continues with
// the next group of hosts while boundaries are unused, because all hosts were past them when an operator was killed
// elsewhere. The operation must restart each host exactly restarts times.
func (d *dayTwo) killDuring(what string, table boundaries, atLeast, restarts int, begin func(names ...string),
	groups ...[]string) {
	d.Helper()
	for _, names := range groups {
		d.killDuringGroup(what, table, restarts, begin, names)
		if len(table.unusedBoundaries()) == 0 {
			break
		}
	}
	if what == "way back" {
		// Between commands, the agent's service on the host performs some of the steps, because it maintains the
		// last applied configuration.
		maps.DeleteFunc(table, func(label string, used bool) bool {
			return !used && strings.Contains(label, "agent: rollback")
		})
		atLeast -= 6
	}
	d.checkVisited(what, table, atLeast)
}

func (d *dayTwo) killDuringGroup(what string, table boundaries, restarts int, begin func(names ...string), names []string) {
	d.Helper()
	before := map[string]int{}
	for _, name := range names {
		before[name] = d.env.Host(name).Machine().Journal().Count(fake.KindReboot)
	}
	d.setBoundaries(table, false)
	d.start()
	begin(names...)
	d.runUntil(table, func(ctx context.Context) error { return d.done(ctx, names...) })
	for _, name := range names {
		if n := d.env.Host(name).Machine().Journal().Count(fake.KindReboot) - before[name]; n != restarts {
			d.Errorf("%s of host %s: it was restarted %d times, want %d", what, name, n, restarts)
		}
	}
	if err := d.current.operator.Stop(); err != nil {
		d.Fatal(err)
	}
}

// awaitDone waits for done without kills.
func (d *dayTwo) awaitDone(names ...string) {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.Context(), waitTimeout)
	defer cancel()
	if err := d.done(ctx, names...); err != nil {
		d.Fatal(err)
	}
}

// requestRetry requests a retry of the failed change of a host.
func (d *dayTwo) requestRetry(names ...string) {
	d.Helper()
	name := names[0]
	instance, err := d.env.Instance(d.Context(), name)
	if err != nil {
		d.Fatal(err)
	}
	d.failed = instance.Status.FailedChange.Time
	after := instance.DeepCopy()
	after.Annotations = map[string]string{v1alpha1.AnnotationRetry: "now"}
	if err := d.env.Client.Patch(d.Context(), after, client.MergeFrom(instance)); err != nil {
		d.Fatal(err)
	}
}

// awaitRolledBack waits until the node is rolled back after its change has failed (again).
func (d *dayTwo) awaitRolledBack(ctx context.Context, names ...string) error {
	err := d.env.WaitForInstance(ctx, d.env.Host(names[0]), "to be brought back", func(i *v1alpha1.WindowsInstance) bool {
		failed := i.Status.FailedChange
		return testenv.IsReady(i) && failed != nil && failed.RolledBack && failed.Time.After(d.failed.Time) &&
			i.Status.SpecDigest == failed.PreviousDigest
	})
	if err != nil {
		return err
	}
	return d.awaitSchedulable(ctx, names...)
}

// awaitInService waits until nodes of the next release are schedulable, with no pending request, held slot or recorded
// failure.
func (d *dayTwo) awaitInService(ctx context.Context, names ...string) error {
	for _, name := range names {
		h := d.env.Host(name)
		err := d.env.WaitForInstance(ctx, h, "to be up to date, with no failure", func(i *v1alpha1.WindowsInstance) bool {
			return testenv.IsReady(i) && i.Status.Version == d.next.Version && i.Status.FailedChange == nil &&
				i.Status.RequestedReboot == nil && i.Status.SpecDigest != ""
		})
		if err != nil {
			return err
		}
	}
	return d.awaitSchedulable(ctx, names...)
}

// awaitSchedulable waits until nodes with the desired release are schedulable and hold no slot.
func (d *dayTwo) awaitSchedulable(ctx context.Context, names ...string) error {
	for _, name := range names {
		h := d.env.Host(name)
		err := d.env.WaitFor(ctx, "Node "+name+" to take pods", &corev1.Node{},
			func(ctx context.Context, reader client.Reader) (bool, error) {
				n := &corev1.Node{}
				err := reader.Get(ctx, client.ObjectKey{Name: name}, n)
				_, cordoned := n.Annotations[v1alpha1.AnnotationCordoned]
				_, rebootRequired := n.Annotations[v1alpha1.AnnotationRebootRequired]
				return h.Machine().BootID() != d.ended[name] && !cordoned && !rebootRequired && !n.Spec.Unschedulable &&
					n.Annotations[v1alpha1.AnnotationVersion] == d.next.Version, client.IgnoreNotFound(err)
			})
		if err != nil {
			return err
		}
	}
	return d.env.WaitFor(ctx, "nothing to be held", &v1alpha1.WindowsDisruptionPolicy{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			p := &v1alpha1.WindowsDisruptionPolicy{}
			err := reader.Get(ctx, client.ObjectKey{Namespace: d.env.Namespace(), Name: v1alpha1.DisruptionPolicyName}, p)
			for _, disruption := range p.Status.Disruptions {
				for _, name := range names {
					if disruption.Node == name {
						return false, err
					}
				}
			}
			return true, err
		})
}
