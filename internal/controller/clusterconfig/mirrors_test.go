package clusterconfig

import (
	"context"
	"net/http"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// createMirrorSet creates a mirror set for a registry.
func (a *fixture) createMirrorSet(name, source string) {
	a.t.Helper()
	a.requireNoError(a.client.Create(a.t.Context(), mirrorSet(name, source)))
}

func mirrorSet(name, source string) *configv1.ImageDigestMirrorSet {
	return &configv1.ImageDigestMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: configv1.ImageDigestMirrorSetSpec{ImageDigestMirrors: []configv1.ImageDigestMirrors{{Source: source,
			Mirrors: []configv1.ImageMirror{"mirror.example.com"}}}}}
}

func (a *fixture) deleteMirrorSet(name string) {
	a.t.Helper()
	a.requireNoError(a.client.Delete(a.t.Context(), &configv1.ImageDigestMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

// expectMirrors checks the number of registries with mirrors.
func (a *fixture) expectMirrors(want int) {
	a.t.Helper()
	if facts, err := a.Current(); err != nil || len(facts.Registries.Hosts) != want {
		a.t.Errorf("registries with mirrors are %+v, want %d; error %v", facts.Registries.Hosts, want, err)
	}
}

// L-03
func TestMirrors_LastSetKeptDuringGracePeriod(t *testing.T) {
	t.Run("a definition that is replaced, with its mirror sets, changes no node", func(t *testing.T) {
		a := newFixture(t)
		a.createMirrorSet("a", "quay.io")
		a.createMirrorSet("b", "registry.example.com")
		a.readAndExpect(1)
		a.deleteMirrorSet("a")
		a.deleteMirrorSet("b")
		if next := a.readAndExpect(0); next != absenceGracePeriod {
			t.Errorf("it reads again in %s", next)
		}
		a.mirrorListErr = apierrors.NewGenericServerResponse(http.StatusNotFound, "list",
			schema.GroupResource{Group: configv1.GroupName, Resource: "imagedigestmirrorsets"}, "", "404 page not found", 0, true)
		a.readAfter(absenceGracePeriod/2, 0)
		a.mirrorListErr = nil
		a.readAfter(absenceGracePeriod/4, 0)
		a.expectMirrors(2)
		a.createMirrorSet("a", "quay.io")
		a.createMirrorSet("b", "registry.example.com")
		a.readAndExpect(0)
		a.readAfter(time.Hour, 0)
	})
	t.Run("the last one that is deleted for good counts after a while", func(t *testing.T) {
		a := newFixture(t)
		a.createMirrorSet("a", "quay.io")
		a.readAndExpect(1)
		a.deleteMirrorSet("a")
		a.readAndExpect(0)
		a.expectMirrors(1)
		a.readAfter(absenceGracePeriod, 1)
		a.expectMirrors(0)
		a.readAfter(time.Hour, 0)
	})
	t.Run("one of two that is deleted counts at once", func(t *testing.T) {
		a := newFixture(t)
		a.createMirrorSet("a", "quay.io")
		a.createMirrorSet("b", "registry.example.com")
		a.readAndExpect(1)
		a.deleteMirrorSet("a")
		a.readAndExpect(1)
		a.expectMirrors(1)
	})
}

// The real API server deletes the objects of a definition before the definition, and serves the kind meanwhile.
// L-03
func TestMirrors_KeptBrieflyAfterCRDDeletion(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(1<<30, 0)) // the test controls the 20 seconds
	r := startAt(t, support.CurrentLine(), clock)
	hosts := func() int {
		facts, err := r.Current()
		if err != nil {
			t.Error(err)
		}
		return len(facts.Registries.Hosts)
	}
	r.createForTest(t, mirrorSet("kept-"+r.namespace, "quay.io"))
	r.waitUntil(t, "the mirror is known", func(context.Context) (bool, error) { return hosts() == 1, nil })
	restore := withoutOptionalKinds(t)
	r.readAgain(t)
	if got := hosts(); got != 1 {
		t.Errorf("registries with mirrors are %d while the kind is not served", got)
	}
	restore()
	r.readAgain(t)
	if got := hosts(); got != 1 {
		t.Errorf("registries with mirrors are %d while the kind is served and has no object yet", got)
	}
	clock.SetTime(clock.Now().Add(absenceGracePeriod))
	r.readAgain(t)
	if got := hosts(); got != 0 {
		t.Errorf("registries with mirrors are %d, with none for a while", got)
	}
}

// readAgain makes the Source read the cluster, and waits for the read.
func (r *running) readAgain(t *testing.T) {
	t.Helper()
	before := r.waitForReads(t)
	r.annotateInfrastructure(t)
	r.waitUntil(t, "the cluster is read again", func(context.Context) (bool, error) { return r.reads.Load() > before, nil })
	r.waitForReads(t)
}
