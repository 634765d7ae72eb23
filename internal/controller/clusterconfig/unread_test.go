package clusterconfig

import (
	"errors"
	"strings"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
)

func TestCurrent_ReportsFailureUntilFirstGoodRead(t *testing.T) {
	a := newFixture(t)
	a.start()
	for _, failure := range []string{"the pull secret is not to be read", "the API server is away"} {
		a.secretErr = errors.New(failure)
		for range 2 { // a reported fault is not reported again
			if _, err := a.Reconcile(t.Context(), ctrl.Request{}); err == nil {
				t.Fatal("the read did not fail")
			}
		}
		if _, err := a.Current(); err == nil || !strings.Contains(err.Error(), failure) {
			t.Errorf("the cluster cannot be used because: %v", err)
		}
		if got := len(a.changed); got != 1 {
			t.Errorf("%d changes were told", got)
		}
		for len(a.changed) > 0 {
			<-a.changed
		}
	}
	a.secretErr = nil
	a.readAndExpect(1)
	good, err := a.Current()
	a.requireNoError(err)

	a.secretErr = errors.New("the API server is away")
	if _, err := a.Reconcile(t.Context(), ctrl.Request{}); err == nil {
		t.Fatal("the read did not fail")
	}
	if facts, err := a.Current(); err != nil || facts.Version != good.Version || len(a.changed) > 0 {
		t.Errorf("a request that fails takes good facts away: error %v", err)
	}
}
