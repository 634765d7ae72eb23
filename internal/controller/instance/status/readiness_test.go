package status

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// Other nodes follow when the first node of a version has worked for some time. That time begins when the host
// becomes up to date, not when the kubelet starts.
func TestComputeReadiness_RestartsWhenUpToDate(t *testing.T) {
	const ready, upToDate = v1alpha1.ConditionReady, v1alpha1.ConditionUpToDate
	for _, c := range []struct {
		name  string
		was   *v1alpha1.Readiness
		true  []string // conditions that are True now
		after v1alpha1.Readiness
		fresh bool // UpToDate was not True before
	}{
		{"a host that was never looked at is not ready", nil, nil, v1alpha1.Readiness{Since: metav1.NewTime(noon)}, true},
		{"a node that is proven is ready from now on", readinessSince(false, -time.Hour), []string{ready, upToDate}, *readinessSince(true, 0), true},
		{"a node that stays ready keeps its time", readinessSince(true, -time.Hour), []string{ready, upToDate}, *readinessSince(true, -time.Hour), false},
		{"a node that is ready and waits for an upgrade keeps its time", readinessSince(true, -time.Hour), []string{ready}, *readinessSince(true, -time.Hour), false},
		{"a ready node that was brought up to date begins anew", readinessSince(true, -time.Hour), []string{ready, upToDate}, *readinessSince(true, 0), true},
		{"a node that is lost is not ready from now on", readinessSince(true, -time.Hour), []string{upToDate}, *readinessSince(false, 0), false},
		{"a node that stays lost keeps its time", readinessSince(false, -time.Hour), []string{upToDate}, *readinessSince(false, -time.Hour), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			status := &v1alpha1.WindowsInstanceStatus{Readiness: c.was}
			for _, condition := range c.true {
				status.Conditions = append(status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue})
			}
			if got := computeReadiness(status, !c.fresh, noon); got.Ready != c.after.Ready || !got.Since.Equal(&c.after.Since) {
				t.Errorf("ready %t since %s, want %t since %s", got.Ready, got.Since, c.after.Ready, c.after.Since)
			}
		})
	}
}

func readinessSince(ready bool, ago time.Duration) *v1alpha1.Readiness {
	return &v1alpha1.Readiness{Ready: ready, Since: metav1.NewTime(noon.Add(ago))}
}
