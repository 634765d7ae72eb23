package cluster

import (
	"slices"
	"testing"

	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
)

// D-3
func TestPool_ConfigurationOfNewLinuxWorker(t *testing.T) {
	const former, target = "rendered-worker-0", "rendered-worker-1"
	for name, test := range map[string]struct {
		spec, status         string
		updated              int32
		generation, observed int64
		want                 string
	}{
		"a pool at rest has one":                                  {target, target, 3, 2, 2, target},
		"a pool without machines, too":                            {target, target, 0, 2, 2, target},
		"while no machine has the target it is the former":        {target, former, 0, 2, 2, former},
		"once one machine has the target it is the target":        {target, former, 1, 2, 2, target},
		"machines counted before the target changed tell nothing": {target, former, 3, 3, 2, former},
		"a pool that never finished has only its target":          {target, "", 0, 1, 0, target},
		"a pool that lost its target keeps what it runs":          {"", former, 3, 3, 3, former},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.pool.Spec.Configuration, f.pool.Status.Configuration = poolConfiguration(test.spec), poolConfiguration(test.status)
			f.pool.Generation, f.pool.Status.ObservedGeneration, f.pool.Status.UpdatedMachineCount = test.generation,
				test.observed, test.updated
			if got, err := renderedName(f.pool); err != nil || got != test.want {
				t.Errorf("got %q, error %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestObjects_OnlyRelevantNamesWatched(t *testing.T) {
	watched := Objects()
	i := slices.IndexFunc(watched, func(w Watched) bool { _, is := w.Object.(*machineconfigv1.MachineConfig); return is })
	if i < 0 {
		t.Fatal("no MachineConfig is watched")
	}
	for name, want := range map[string]bool{"rendered-worker-1": true, "rendered-master-1": false,
		"99-worker-ssh": false} {
		if watched[i].Names(name) != want {
			t.Errorf("MachineConfig %s is watched: %v", name, !want)
		}
	}
	for _, w := range watched {
		if w.Names("another") {
			t.Errorf("%T another is watched", w.Object)
		}
	}
}
