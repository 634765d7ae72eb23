package disruption_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

//
func TestGate_TwoOperatorsKeepBudget(t *testing.T) {
	w := newWorld(t).forSubtest(t)
	set := w.createMachineSet("workers", 3)
	candidates := []*v1alpha1.WindowsInstance{
		w.createHost("byoh-1", before), w.createHost("byoh-2", before), w.createHost("byoh-3", before),
		w.createMachine(set, "machine-1", before), w.createMachine(set, "machine-2", before), w.createMachine(set, "machine-3", before),
	}
	operators := []*process{w.start("one", false), w.start("two", false)}

	budget, most := 1, 0
	var mu sync.Mutex
	ctx, cancel := context.WithCancel(t.Context())
	seen, err := w.admin.Watch(ctx, &v1alpha1.WindowsDisruptionPolicyList{}, client.InNamespace(namespace))
	w.requireNoError(err)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for e := range seen.ResultChan() {
			if p, ok := e.Object.(*v1alpha1.WindowsDisruptionPolicy); ok {
				mu.Lock()
				most = max(most, len(p.Status.Disruptions))
				if len(p.Status.Disruptions) > 2 {
					t.Errorf("%d nodes are disturbed: %+v", len(p.Status.Disruptions), p.Status.Disruptions)
				}
				mu.Unlock()
			}
		}
	}()

	rounds := 50
	if testing.Short() {
		rounds = 10
	}
	for round := range rounds {
		if round == rounds/2 {
			budget = 2
			w.editPolicy(func(s *v1alpha1.WindowsDisruptionPolicySpec) { s.MaxUnavailable = ptr.To(intstr.FromInt32(2)) })
			w.waitUntil("both know the new budget", func(ctx context.Context) (bool, error) {
				one, err := operators[0].Settings(ctx)
				two, err2 := operators[1].Settings(ctx)
				return one.MaxUnavailable.Number == 2 && two.MaxUnavailable.Number == 2, errors.Join(err, err2)
			})
		}
		var group sync.WaitGroup
		var allowed []string
		for i, candidate := range candidates {
			for _, operator := range operators[:1+(i+round)%2] {
				group.Go(func() {
					decision, err := operator.Acquire(t.Context(), disruptionpolicy.Request{
						Instance: candidate.Name, UID: candidate.UID, Cause: v1alpha1.CauseConfiguration, Version: version,
					})
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Error(err)
					}
					if decision.Allowed && !slices.Contains(allowed, candidate.Name) {
						allowed = append(allowed, candidate.Name)
					}
				})
			}
		}
		group.Wait()
		if listed := w.disruptedInstances(); len(listed) != budget || len(allowed) != budget {
			t.Fatalf("round %d: %q were allowed, %q are listed, and %d may be disturbed", round, allowed, listed, budget)
		}
		for _, candidate := range candidates {
			for _, operator := range operators {
				group.Go(func() {
					if err := operator.Release(t.Context(), candidate.Name); err != nil {
						t.Error(err)
					}
				})
			}
		}
		group.Wait()
		w.waitUntil("all released", func(context.Context) (bool, error) {
			for _, candidate := range candidates {
				for _, operator := range operators {
					operator.releaseSlot(candidate)
				}
			}
			return len(w.disruptedInstances()) == 0, nil
		})
	}
	cancel()
	<-watched
	if most != 2 {
		t.Errorf("at most %d were disturbed", most)
	}
}

func TestGate(t *testing.T) {
	shared := newWorld(t)
	t.Run("an operator takes over what another one has begun, and that one ends it no more", func(t *testing.T) {
		w := shared.forSubtest(t)
		host, other := w.createHost("byoh-1", before), w.createHost("byoh-2", before)
		first := w.start("first", false)
		if decision := first.acquireSlot(host, v1alpha1.CauseUpgrade); !decision.Allowed {
			t.Fatalf("%+v", decision)
		}
		second := w.start("second", false)
		second.reconcile() // adopts earlier disruptions
		first.acquireSlot(host, v1alpha1.CauseUpgrade)
		begun := w.getPolicy().Status.Disruptions[0]
		if held, err := second.Holds(t.Context(), host.Name); err != nil || !held {
			t.Errorf("the second does not know of it: %v", err)
		}
		second.releaseSlot(host) // held by the first process
		if decision := second.acquireSlot(other, v1alpha1.CauseConfiguration); decision.Allowed || decision.Reason != v1alpha1.ReasonMaxUnavailableReached {
			t.Errorf("%+v", decision)
		}
		if decision := second.acquireSlot(host, v1alpha1.CauseRepair); !decision.Allowed {
			t.Errorf("%+v", decision)
		}
		adopted := w.getPolicy().Status.Disruptions[0]
		begun.HolderIdentity = "second"
		if adopted != begun {
			t.Errorf("it is %+v, want %+v", adopted, begun)
		}
		first.releaseSlot(host)
		if listed := w.disruptedInstances(); len(listed) != 1 {
			t.Errorf("%q are listed after the first has tried to end it", listed)
		}
		second.releaseSlot(host)
		if listed := w.disruptedInstances(); len(listed) != 0 {
			t.Errorf("%q are listed", listed)
		}
	})
	t.Run("an operator that starts ends what a former one has begun", func(t *testing.T) {
		w := shared.forSubtest(t)
		host := w.createHost("byoh-1", before)
		w.start("first", false).acquireSlot(host, v1alpha1.CauseUpgrade)
		w.start("second", false).releaseSlot(host)
		if listed := w.disruptedInstances(); len(listed) != 0 {
			t.Errorf("%q are listed", listed)
		}
	})
	t.Run("what another operator has begun ends only once its node was in service for a minute", func(t *testing.T) {
		w := shared.forSubtest(t)
		host := w.createHost("byoh-1", before)
		first, second := w.start("first", false), w.start("second", false)
		first.reconcile()
		second.reconcile()
		first.acquireSlot(host, v1alpha1.CauseUpgrade)
		cordon := func(unschedulable bool) {
			w.patchNode(host.Name, func(n *corev1.Node) { n.Spec.Unschedulable = unschedulable })
		}
		for _, step := range []struct {
			after    time.Duration
			cordoned bool
			listed   int
		}{
			{0, false, 1},
			{50 * time.Second, false, 1},
			{20 * time.Second, true, 1}, // the other process is working on it
			{time.Hour / 12, true, 1},
			{time.Second, false, 1},
			{59 * time.Second, false, 1},
			{time.Second, false, 0},
		} {
			w.advanceClock(step.after)
			cordon(step.cordoned)
			second.releaseSlot(host)
			second.reconcile()
			if listed := w.disruptedInstances(); len(listed) != step.listed {
				t.Fatalf("after %s, cordoned %t: %q are listed", step.after, step.cordoned, listed)
			}
		}
		if found := second.eventsWithReason("DisruptionFailed"); len(found) != 0 {
			t.Errorf("events %q", found)
		}
	})
	t.Run("an instance that was paused after its node was chosen is left alone", func(t *testing.T) {
		w := shared.forSubtest(t)
		host, machine := w.createHost("byoh-1", before), w.createMachine(w.createMachineSet("workers", 2), "worker-1", before)
		w.createMachine(w.createMachineSet("others", 2), "other-1", before)
		p := w.start("one", false)
		for _, instance := range []*v1alpha1.WindowsInstance{host, machine} {
			from := instance.DeepCopy()
			instance.Spec.Paused = true
			w.requireNoError(w.admin.Patch(t.Context(), instance.DeepCopy(), client.MergeFrom(from)))
		}
		if decision := p.acquireSlot(host, v1alpha1.CauseUpgrade); decision.Allowed || decision.Reason != v1alpha1.ReasonPaused {
			t.Errorf("%+v", decision)
		}
		if decision := p.acquireReplacement(machine); decision.Allowed || decision.Reason != v1alpha1.ReasonPaused {
			t.Errorf("%+v", decision)
		}
	})
	t.Run("asking again for what goes on writes nothing", func(t *testing.T) {
		w := shared.forSubtest(t)
		host := w.createHost("byoh-1", before)
		p := w.start("one", false)
		p.acquireSlot(host, v1alpha1.CauseUpgrade)
		writes := p.writes.Load()
		for range 3 {
			if decision := p.acquireSlot(host, v1alpha1.CauseUpgrade); !decision.Allowed {
				t.Errorf("%+v", decision)
			}
		}
		if p.writes.Load() != writes {
			t.Errorf("%d writes", p.writes.Load()-writes)
		}
	})
	t.Run("with nothing to release the API server is asked nothing", func(t *testing.T) {
		w := shared.forSubtest(t)
		host, other := w.createHost("byoh-1", before), w.createHost("byoh-2", before)
		p := w.start("one", false)
		requests := p.requests.Load()
		p.releaseSlot(host) // no policy exists yet
		if p.requests.Load() != requests {
			t.Errorf("%d requests without a policy", p.requests.Load()-requests)
		}
		p.acquireSlot(other, v1alpha1.CauseUpgrade)
		w.waitUntil("the cache has what this process wrote", func(ctx context.Context) (bool, error) {
			before := p.requests.Load()
			_, err := p.Settings(ctx)
			return p.requests.Load() == before, err
		})
		requests = p.requests.Load()
		p.releaseSlot(host)
		if held, err := p.Holds(t.Context(), host.Name); err != nil || held {
			t.Errorf("held: %t, %v", held, err)
		}
		if _, err := p.Settings(t.Context()); err != nil {
			t.Error(err)
		}
		if p.requests.Load() != requests {
			t.Errorf("%d requests", p.requests.Load()-requests)
		}
	})
	t.Run("many that wait do not have the cluster read for each of them, and none of them waits longer for that", func(t *testing.T) {
		w := shared.forSubtest(t)
		host, second, third := w.createHost("byoh-1", before), w.createHost("byoh-2", before), w.createHost("byoh-3", before)
		p := w.start("one", false)
		p.acquireSlot(host, v1alpha1.CauseUpgrade)
		p.acquireSlot(second, v1alpha1.CauseUpgrade)
		requests := p.requests.Load()
		for range 20 {
			if decision := p.acquireSlot(third, v1alpha1.CauseUpgrade); decision.Allowed {
				t.Errorf("%+v", decision)
			}
		}
		if p.requests.Load() != requests {
			t.Errorf("%d requests", p.requests.Load()-requests)
		}
		p.releaseSlot(host)
		if decision := p.acquireSlot(third, v1alpha1.CauseUpgrade); !decision.Allowed {
			t.Errorf("%+v", decision)
		}
	})
	t.Run("a policy that somebody has deleted is made again, with what goes on", func(t *testing.T) {
		w := shared.forSubtest(t)
		host, other := w.createHost("byoh-1", before), w.createHost("byoh-2", before)
		p := w.start("one", false)
		p.acquireSlot(host, v1alpha1.CauseUpgrade)
		w.requireNoError(w.admin.Delete(t.Context(), w.getPolicy()))
		if decision := p.acquireSlot(other, v1alpha1.CauseUpgrade); decision.Allowed {
			t.Error("the budget is passed")
		}
		p.reconcile()
		if listed := w.disruptedInstances(); !slices.Equal(listed, []string{"byoh-1"}) {
			t.Errorf("%q are listed", listed)
		}
		p.releaseSlot(host)
		if decision := p.acquireSlot(other, v1alpha1.CauseUpgrade); !decision.Allowed {
			t.Errorf("%+v", decision)
		}
	})
	t.Run("a node that is not Ready counts as unavailable in its pool, and as failed in the end", func(t *testing.T) {
		w := shared.forSubtest(t)
		host, broken := w.createHost("byoh-1", before), w.createHost("byoh-2", before)
		w.reportNode(broken.Name, false, "v1.35.1")
		p := w.start("one", false)
		if decision := p.acquireSlot(host, v1alpha1.CauseConfiguration); decision.Allowed || decision.After <= 0 {
			t.Errorf("%+v", decision)
		}
		if decision := p.acquireSlot(broken, v1alpha1.CauseRepair); !decision.Allowed {
			t.Errorf("the repair of the node itself: %+v", decision)
		}
		p.releaseSlot(broken)
		w.clock.SetTime(w.clock.Now().Add(disruptionpolicy.DefaultFailureDeadline))
		if decision := p.acquireSlot(host, v1alpha1.CauseConfiguration); !decision.Allowed {
			t.Errorf("%+v", decision)
		}
	})
	t.Run("an instance that is not there, or is another one, is not let through", func(t *testing.T) {
		w := shared.forSubtest(t)
		host := w.createHost("byoh-1", before)
		p := w.start("one", false)
		host.UID = "another"
		if decision := p.acquireSlot(host, v1alpha1.CauseUpgrade); decision.Allowed || decision.Message == "" {
			t.Errorf("%+v", decision)
		}
		host.Name = "gone"
		if decision := p.acquireSlot(host, v1alpha1.CauseUpgrade); decision.Allowed || decision.Message == "" {
			t.Errorf("%+v", decision)
		}
	})
}

//
func TestReplacements(t *testing.T) {
	shared := newWorld(t)
	t.Run("a Machine that is being deleted counts until there is another one that works", func(t *testing.T) {
		w := shared.forSubtest(t)
		set := w.createMachineSet("workers", 2)
		old, other, listed := w.createMachine(set, "machine-1", before), w.createMachine(set, "machine-2", before), w.createHost("byoh-1", before)
		p := w.start("one", false)
		if decision := p.acquireReplacement(old); !decision.Allowed {
			t.Fatalf("%+v", decision)
		}
		if entry := w.getPolicy().Status.Disruptions[0]; entry.Machine != "machine-1" || entry.Pool != "MachineSet/workers" || entry.Node != "machine-1" {
			t.Errorf("%+v", entry)
		}
		if held, err := p.Holds(t.Context(), old.Name); err != nil || held {
			t.Errorf("held in place: %t, %v", held, err)
		}
		p.reconcile()
		if got := w.disruptedInstances(); len(got) != 1 {
			t.Fatalf("before the Machine is deleted %q are listed", got)
		}
		machine := w.deleteMachine(old)
		p.releaseSlot(old)
		w.completeDeletion(machine, old)
		p.reconcile()
		for _, candidate := range []*v1alpha1.WindowsInstance{other, listed} {
			if decision := p.acquireSlot(candidate, v1alpha1.CauseUpgrade); decision.Allowed {
				t.Errorf("%s may be disturbed", candidate.Name)
			}
		}
		w.createMachine(set, "machine-3", version)
		p.reconcile()
		if got := w.disruptedInstances(); len(got) != 0 {
			t.Errorf("%q are listed", got)
		}
		if decision := p.acquireReplacement(other); !decision.Allowed {
			t.Errorf("%+v", decision)
		}
	})
	t.Run("a Machine that was not deleted after all is released", func(t *testing.T) {
		w := shared.forSubtest(t)
		instance := w.createMachine(w.createMachineSet("workers", 1), "machine-1", before)
		p := w.start("one", false)
		if decision := p.acquireReplacement(instance); !decision.Allowed {
			t.Fatalf("the only Machine of its set: %+v", decision)
		}
		p.releaseSlot(instance)
		if got := w.disruptedInstances(); len(got) != 0 {
			t.Errorf("%q are listed", got)
		}
	})
	t.Run("a MachineSet that never gets its Machine counts until the deadline", func(t *testing.T) {
		w := shared.forSubtest(t)
		instance, listed := w.createMachine(w.createMachineSet("workers", 1), "machine-1", before), w.createHost("byoh-1", before)
		p := w.start("one", false)
		p.acquireReplacement(instance)
		w.completeDeletion(w.deleteMachine(instance), instance)
		p.reconcile()
		if decision := p.acquireSlot(listed, v1alpha1.CauseConfiguration); decision.Allowed {
			t.Error("the budget is passed")
		}
		w.clock.SetTime(w.clock.Now().Add(disruptionpolicy.DefaultFailureDeadline + time.Second))
		p.reconcile()
		if found := p.eventsWithReason("DisruptionFailed"); len(found) != 1 {
			t.Errorf("events %q", found)
		}
		if decision := p.acquireSlot(listed, v1alpha1.CauseConfiguration); !decision.Allowed {
			t.Errorf("%+v", decision)
		}
	})
}
