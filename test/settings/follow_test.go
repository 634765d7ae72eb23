package settings

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// setting is a cluster setting that is set and unset.
type setting struct {
	set, unset func(ctx context.Context) error
	// changes lists all differences on each host while the setting is set, in the format of changes, sorted.
	changes []string
	// restarts lists the services that are restarted on each host, in each direction, sorted.
	restarts []string
	// disrupts is true if the change disrupts pods. Then nodes are drained one after the other. Otherwise all hosts
	// change at once, without effect on pods.
	disrupts bool
	// inspect inspects a host while the setting is set. It may be nil.
	inspect func(t *testing.T, h *testenv.Host)
}

// checkSetting sets and unsets a setting, and checks that every host makes exactly the planned changes.
func (l lab) checkSetting(s setting) {
	l.Helper()
	before := l.takeSnapshots()
	l.applySetting("set", s, s.set, before, s.changes)
	if s.inspect != nil {
		for _, h := range l.Hosts() {
			s.inspect(l.T, h)
		}
	}
	l.waitForIdle()
	l.applySetting("taken back", s, s.unset, before, nil)
}

// applySetting applies one direction of a setting, and waits until all hosts have the expected differences.
func (l lab) applySetting(way string, s setting, do func(context.Context) error,
	before map[string]fake.Snapshot, want []string) {
	l.Helper()
	digests, pods, marks := l.specDigests(), l.waitForPods(), map[*testenv.Host]int{}
	for _, h := range l.Hosts() {
		marks[h] = len(h.Machine().Journal().Entries(nil))
	}
	watch, err := l.WatchAvailability(l.Context(), testenv.AvailabilityOptions{PodNamespace: workloadNamespace,
		PodLabels: workloadLabels})
	l.requireNoError(err)
	defer watch.Stop()
	l.requireNoError(do(l.Context()))
	l.waitForChanges(way, before, want, digests)
	after := l.waitForPods()
	var report testenv.AvailabilityReport
	l.runWithTimeout(waitTimeout, func(ctx context.Context) (err error) {
		report, err = watch.Report(ctx)
		return err
	})
	l.checkDisruptions(way, s, report, countMoved(pods, after))
	for _, h := range l.Hosts() {
		if got := startedServices(h, marks[h]); !slices.Equal(got, s.restarts) {
			l.Errorf("%s: host %s started %s, not %s", way, h.Options.Name, got, s.restarts)
		}
	}
}

// checkDisruptions compares the observed disruptions of nodes and pods with the permitted ones.
func (l lab) checkDisruptions(way string, s setting, report testenv.AvailabilityReport, moved int) {
	l.Helper()
	disturbed, atOnce := 0, 0
	if s.disrupts {
		disturbed, atOnce = len(l.Hosts()), 1
	}
	switch {
	case report.MaxUnavailable > atOnce, report.MaxDisruptions > atOnce, len(report.Ungated) > 0:
		l.Errorf("%s: %d nodes were unavailable at once, %d entries of the gate at once, without one: %s", way,
			report.MaxUnavailable,
			report.MaxDisruptions, report.Ungated)
	case len(report.Disrupted) != disturbed:
		l.Errorf("%s: %d nodes were disturbed, not %d", way, len(report.Disrupted), disturbed)
	case report.MinHealthy < replicas-atOnce:
		l.Errorf("%s: only %d of %d pods were healthy", way, report.MinHealthy, replicas)
	case s.disrupts && moved != replicas, !s.disrupts && moved != 0:
		l.Errorf("%s: %d of %d pods had to move", way, moved, replicas)
	default:
		return
	}
	l.Logf("%s:\n%s", way, strings.Join(report.Timeline, "\n"))
}

// waitForChanges waits until all hosts have the expected differences, and are done.
func (l lab) waitForChanges(way string, before map[string]fake.Snapshot, want, digests []string) {
	l.Helper()
	difference := ""
	isUnchanged := func() bool {
		difference = ""
		for _, h := range l.Hosts() {
			if got := diffSnapshots(before[h.Options.Name], takeSnapshot(h)); !slices.Equal(got, want) {
				difference = fmt.Sprintf("%s: host %s differs in\n\t%s\nand should in\n\t%s", way, h.Options.Name,
					strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
				return false
			}
		}
		return true
	}
	ctx, cancel := context.WithTimeout(l.Context(), waitTimeout)
	defer cancel()
	err := l.WaitFor(ctx, "all hosts to follow what is "+way, &v1alpha1.WindowsInstance{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			done, err := l.isFleetDone(ctx, reader, func(digest string) bool { return !slices.Contains(digests, digest) })
			return done && isUnchanged(), err
		})
	if err != nil {
		l.Fatalf("%v\n%s", err, difference)
	}
	l.waitForNoDisruption()
}

// isFleetDone reports whether all instances are Ready and up to date with the desired specification.
func (l lab) isFleetDone(ctx context.Context, reader client.Reader, arrived func(digest string) bool,
	except ...string) (bool, error) {
	var list v1alpha1.WindowsInstanceList
	if err := reader.List(ctx, &list, client.InNamespace(l.Namespace())); err != nil {
		return false, err
	}
	for i := range list.Items {
		instance := &list.Items[i]
		if slices.Contains(except, instance.Spec.Address) {
			continue
		}
		if digest := instance.Status.SpecDigest; digest == "" || !arrived(digest) || !testenv.IsReady(instance) ||
			!meta.IsStatusConditionTrue(instance.Status.Conditions, v1alpha1.ConditionUpToDate) {
			return false, nil
		}
	}
	return len(list.Items) == len(l.Hosts()), nil
}

// waitForNoDisruption waits until no node is disrupted any more.
func (l lab) waitForNoDisruption() {
	l.Helper()
	key := client.ObjectKey{Namespace: l.Namespace(), Name: v1alpha1.DisruptionPolicyName}
	l.awaitCondition("nothing to be disturbed", &v1alpha1.WindowsDisruptionPolicy{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			p := &v1alpha1.WindowsDisruptionPolicy{}
			err := reader.Get(ctx, key, p)
			return len(p.Status.Disruptions) == 0, client.IgnoreNotFound(err)
		})
}

// specDigests returns the digests of the hosts' current specifications, sorted.
func (l lab) specDigests() (all []string) {
	l.Helper()
	l.awaitCondition("all hosts to be up to date", &v1alpha1.WindowsInstance{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			all = nil
			return l.isFleetDone(ctx, reader, func(digest string) bool { all = append(all, digest); return true })
		})
	slices.Sort(all)
	return all
}

// startedServices returns the services that were started on a host since the mark in its journal, in order and
// without duplicates.
func startedServices(h *testenv.Host, mark int) (names []string) {
	for _, e := range h.Machine().Journal().Entries(nil)[mark:] {
		name, runs := strings.CutSuffix(e.Detail, " runs")
		if e.Kind == fake.KindService && runs && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// changeSetting changes a setting and waits until all hosts have a new specification and are done.
func (l lab) changeSetting(what string, do func(context.Context) error) {
	l.Helper()
	digests := l.specDigests()
	l.requireNoError(do(l.Context()))
	l.awaitCondition("all hosts to follow "+what, &v1alpha1.WindowsInstance{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			return l.isFleetDone(ctx, reader, func(digest string) bool { return !slices.Contains(digests, digest) })
		})
	l.waitForNoDisruption()
}
