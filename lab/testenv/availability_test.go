package testenv

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func TestAvailability(t *testing.T) {
	r := newRig(t, Options{Hosts: Hosts(2)})
	ctx := newTimeoutContext(t, 5*time.Minute)
	if _, err := r.InstallOperator(ctx, ""); err != nil {
		t.Fatal(err)
	}
	if err := r.CreateKey(ctx); err != nil {
		t.Fatal(err)
	}
	o, err := r.RunOperator()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.ListHosts(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	o.Kill() // The operator would repair the changes of the test.

	watch := func(t *testing.T, except ...string) func() AvailabilityReport {
		t.Helper()
		a, err := r.WatchAvailability(ctx, AvailabilityOptions{Except: except})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Stop)
		return func() AvailabilityReport {
			t.Helper()
			report, err := a.Report(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return report
		}
	}
	change := func(t *testing.T, node, patch string) {
		t.Helper()
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
		if err := r.Client.Patch(ctx, n, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	const (
		cordoned = `{"spec":{"unschedulable":true},"metadata":{"annotations":{"` + v1alpha1.AnnotationCordoned + `":"x"}}}`
		free     = `{"spec":{"unschedulable":null},"metadata":{"annotations":{"` + v1alpha1.AnnotationCordoned + `":null}}}`
	)

	t.Run("with nothing happening nothing is unavailable", func(t *testing.T) {
		if report := watch(t)(); report.MaxUnavailable != 0 || len(report.Ungated) > 0 {
			t.Errorf("it tells %+v", report)
		}
	})
	t.Run("two nodes that are cordoned for a moment, one after the other, are one at once", func(t *testing.T) {
		report := watch(t)
		for _, name := range []string{"instance-1", "instance-2"} {
			change(t, name, cordoned)
			change(t, name, free)
		}
		if got := report(); got.MaxUnavailable != 1 || len(got.Ungated) != 2 || !slices.Equal(got.Disrupted, []string{"instance-1", "instance-2"}) {
			t.Errorf("it tells %+v", got)
		}
	})
	t.Run("two at once are two, however short the moment", func(t *testing.T) {
		report := watch(t)
		change(t, "instance-1", cordoned)
		change(t, "instance-2", cordoned)
		change(t, "instance-1", free)
		change(t, "instance-2", free)
		if got := report(); got.MaxUnavailable != 2 {
			t.Errorf("it tells %+v", got)
		}
	})
	t.Run("a node that is left out does not count", func(t *testing.T) {
		report := watch(t, "instance-1")
		change(t, "instance-1", cordoned)
		change(t, "instance-1", free)
		if got := report(); got.MaxUnavailable != 0 {
			t.Errorf("it tells %+v", got)
		}
	})
	t.Run("a kubelet that is restarted makes its node unavailable, though nobody has told the API server", func(t *testing.T) {
		report, services := watch(t), r.Host("instance-1").Machine().Host().Services
		if err := services.Stop(ctx, "kubelet"); err != nil {
			t.Fatal(err)
		}
		if err := services.Start(ctx, "kubelet"); err != nil {
			t.Fatal(err)
		}
		got := report()
		if got.MaxUnavailable != 1 || !strings.Contains(strings.Join(got.Timeline, "\n"), "instance-1 is without kubelet") {
			t.Errorf("it tells %+v", got)
		}
	})
	t.Run("what happens while the API server is restarted is seen", func(t *testing.T) {
		report := watch(t)
		change(t, "instance-1", cordoned)
		if err := r.Cluster().Restart(ctx); err != nil {
			t.Fatal(err)
		}
		change(t, "instance-1", free)
		change(t, "instance-2", cordoned)
		change(t, "instance-2", free)
		if got := report(); !slices.Contains(got.Disrupted, "instance-1") || got.MaxUnavailable == 0 {
			t.Errorf("it tells %+v", got)
		}
	})
}
