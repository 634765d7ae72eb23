package test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// Seed and number of the random orders in TestEdits_AnyOrderLeavesNothingBehind.
var (
	firstOrder = flag.Uint64("edits.first", 1, "number of the first random order of edits")
	orders     = flag.Uint64("edits.orders", 2, "how many random orders of edits are tried")
)

const (
	editsOfOrder = 8
	// maxPause is the maximum pause between two edits. It is shorter than a host needs to join or to be
	// restored.
	maxPause = 2500 * time.Millisecond
)

// An administrator edits the list at random. Hosts are listed under up to three keys, the complete list or
// instances are deleted, and the operator is killed. In the end, each listed host is exactly one node, and nothing
// remains of the unlisted hosts.
func TestEdits_AnyOrderLeavesNothingBehind(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: []testenv.HostOptions{
		{DNSName: testenv.DNSName(1)}, {DNSName: testenv.DNSName(2)}}})
	a := &administrator{t: t, r: r, operator: run(t, r)}
	for order := range *orders {
		number := *firstOrder + order
		a.random = rand.New(rand.NewPCG(number, 0))
		a.done = []string{fmt.Sprintf("order %d", number)}
		for range editsOfOrder {
			a.performEdit()
			a.sleepRandomly()
		}
		a.writeEntries(a.drawEntries())
		a.waitUntilConsistent()
	}
}

// administrator changes the list at random.
type administrator struct {
	t        *testing.T
	r        *testenv.Environment
	operator *testenv.Operator
	random   *rand.Rand
	entries  map[string]string
	done     []string
}

func (a *administrator) sleepRandomly() { time.Sleep(rand.N(maxPause)) }

// performEdit performs a random action of an administrator or of the cluster.
func (a *administrator) performEdit() {
	a.t.Helper()
	switch n := a.random.IntN(10); {
	case n < 7:
		a.writeEntries(a.drawEntries())
	case n < 8:
		a.recordEdit("the operator is killed")
		a.operator.Kill()
		a.operator = run(a.t, a.r)
	default:
		instances := a.listInstances()
		if len(instances) == 0 {
			return
		}
		instance := instances[a.random.IntN(len(instances))]
		a.deleteInstance(instance)
	}
}

// deleteInstance deletes an instance. It waits until the instance is recreated and the operator has connected to the
// host, because only the instance knows the host. A host that was being removed is listed again, as docs/nodes.md
// requires.
func (a *administrator) deleteInstance(instance v1alpha1.WindowsInstance) {
	a.t.Helper()
	key := instance.Spec.Source.ConfigMapKey
	a.recordEdit("instance " + key + " is deleted")
	requireNoError(a.t, client.IgnoreNotFound(a.r.Client.Delete(a.t.Context(), &instance)))
	if _, listed := a.entries[key]; !listed {
		entries := maps.Clone(a.entries)
		for _, h := range a.r.Hosts() {
			if slices.Contains(keysOf(h), key) {
				_, entries[key] = h.Entry()
			}
		}
		a.writeEntries(entries)
	}
	waitUntil(a.t, "the instance is made again, and the operator connects", func(context.Context) (bool, error) {
		return slices.ContainsFunc(a.listInstances(), func(other v1alpha1.WindowsInstance) bool {
			return other.Spec.Source.ConfigMapKey == key && other.UID != instance.UID && other.Status.HostKey != nil
		}), nil
	})
}

// drawEntries returns a random list. An empty list means that the ConfigMap is deleted.
func (a *administrator) drawEntries() map[string]string {
	entries := map[string]string{}
	if a.random.IntN(4) == 0 {
		return entries
	}
	for _, h := range a.r.Hosts() {
		_, value := h.Entry()
		for _, key := range keysOf(h) {
			if a.random.IntN(2) == 0 {
				entries[key] = value
			}
		}
	}
	return entries
}

// keysOf returns the keys under which a host may be listed.
func keysOf(h *testenv.Host) []string {
	return []string{h.Options.DNSName, h.Options.Address, strings.ToUpper(h.Options.DNSName)}
}

func (a *administrator) writeEntries(entries map[string]string) {
	a.t.Helper()
	a.recordEdit(fmt.Sprintf("listed are %q", slices.Sorted(maps.Keys(entries))))
	a.entries = entries
	if len(entries) == 0 {
		requireNoError(a.t, client.IgnoreNotFound(a.r.DeleteInstances(a.t.Context())))
		return
	}
	requireNoError(a.t, a.r.SetInstances(a.t.Context(), entries))
}

func (a *administrator) recordEdit(what string) {
	a.done = append(a.done, time.Now().Format("04:05.000 ")+what)
}

func (a *administrator) listInstances() []v1alpha1.WindowsInstance {
	a.t.Helper()
	var list v1alpha1.WindowsInstanceList
	requireNoError(a.t, a.r.Client.List(a.t.Context(), &list))
	return list.Items
}

// waitUntilConsistent waits until the cluster and the hosts match the list.
func (a *administrator) waitUntilConsistent() {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), waitTimeout)
	defer cancel()
	var faults []string
	err := a.r.WaitFor(ctx, "hosts to be what the list says", &v1alpha1.WindowsInstance{},
		func(ctx context.Context, _ client.Reader) (bool, error) {
			found, err := a.findFaults(ctx)
			if err == nil {
				faults = found
			}
			return err == nil && len(found) == 0, err
		})
	if err != nil {
		a.t.Fatalf("%v\n%s\nafter:\n%s", err, strings.Join(faults, "\n"), strings.Join(a.done, "\n"))
	}
}

// findFaults returns the differences between the list on the API server and the cluster with its hosts.
func (a *administrator) findFaults(ctx context.Context) ([]string, error) {
	var list v1alpha1.WindowsInstanceList
	if err := a.r.Client.List(ctx, &list); err != nil {
		return nil, err
	}
	var faults []string
	fault := func(format string, arguments ...any) { faults = append(faults, fmt.Sprintf(format, arguments...)) }
	ready := map[string]int{}
	for _, instance := range list.Items {
		key := instance.Spec.Source.ConfigMapKey
		if _, listed := a.entries[key]; !listed || instance.Spec.DesiredState != v1alpha1.DesiredStateNode {
			fault("instance of %s is to be %s", key, instance.Spec.DesiredState)
		}
		switch instance.Status.Summary {
		case v1alpha1.ReasonReady:
			ready[instance.Status.NodeRef.Name]++
		case v1alpha1.ReasonDuplicateHost:
		default:
			fault("instance of %s says %s", key, instance.Status.Summary)
		}
	}
	if len(list.Items) != len(a.entries) {
		fault("%d instances", len(list.Items))
	}
	for _, h := range a.r.Hosts() {
		listed := slices.ContainsFunc(keysOf(h), func(key string) bool { _, is := a.entries[key]; return is })
		err := a.r.Client.Get(ctx, keyOf("", h.Options.Name), &corev1.Node{})
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if exists := !apierrors.IsNotFound(err); exists != listed {
			fault("Node %s is there: %t", h.Options.Name, exists)
		}
		if listed != (ready[h.Options.Name] == 1) {
			fault("%d instances of %s are Ready", ready[h.Options.Name], h.Options.Name)
		}
		if left := filesOfNode(h); listed != (left > 0) {
			fault("%s has %d files of a node", h.Options.Name, left)
		}
	}
	return faults, nil
}

// filesOfNode counts the files of the operator on a host.
func filesOfNode(h *testenv.Host) (files int) {
	for path := range h.Machine().Snapshot().Files {
		if strings.HasPrefix(path, `C:\k\`) {
			files++
		}
	}
	return files
}
