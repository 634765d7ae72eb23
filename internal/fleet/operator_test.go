package fleet

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestInactivityWarning(t *testing.T) {
	now := time.Date(2026, 3, 1, 14, 30, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		holder  *string
		renewed time.Duration
		want    string
	}{
		"one that renews its Lease is":                 {ptr.To("pod-1"), 2 * time.Minute, ""},
		"one whose clock is ahead is":                  {ptr.To("pod-1"), -time.Minute, ""},
		"one that has been silent for long is not":     {ptr.To("pod-1"), 12 * time.Minute, "The output may be stale: no operator has been active for 12m. See: kubectl get pods -n wmco"},
		"one that was stopped has given up its Lease":  {ptr.To(""), 90 * time.Second, "The output may be stale: no operator has been active for 90s. See: kubectl get pods -n wmco"},
		"one whose Lease has no holder has ended, too": {nil, time.Hour, "The output may be stale: no operator has been active for 60m. See: kubectl get pods -n wmco"},
	} {
		t.Run(name, func(t *testing.T) {
			renewed := metav1.NewMicroTime(now.Add(-test.renewed))
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "wmco"},
				Spec: coordinationv1.LeaseSpec{HolderIdentity: test.holder, RenewTime: &renewed}}
			if got := inactivityWarning(lease, now); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
