package identity

import (
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// The operator reads a host's certificate report with each inspection, and a host can cause inspections at
// will. R-131
func TestRecordReported_HostCannotForceRenewals(t *testing.T) {
	const name = "cloud-node-manager"
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	spec := nodespec.NodeSpec{Identities: []nodespec.Identity{{Name: name}}}
	for sentence, reported := range map[string]*plan.CertificateFacts{
		"that it is nearly over": {NotBefore: noon.Add(-time.Hour), NotAfter: noon.Add(time.Second)},
		"that it is over":        {NotBefore: noon.Add(-time.Hour), NotAfter: noon.Add(-time.Second)},
		"that there is none":     nil,
	} {
		t.Run("a host reports "+sentence, func(t *testing.T) {
			status, renewals := &v1alpha1.WindowsInstanceStatus{}, 0
			facts := &plan.Facts{Identities: map[string]plan.IdentityFacts{name: {Current: reported}}}
			for now := noon; now.Before(noon.Add(24 * time.Hour)); now = now.Add(time.Minute) {
				RecordReported(status, spec, facts, now)
				if due, _ := Due(status.Certificates, now, 0); len(due) > 0 {
					renewals++
					issued := certificateStatus(name, now, now.Add(30*24*time.Hour))
					recordRenewed(status, issued, now)
				}
			}
			if renewals < 1 || renewals > 25 {
				t.Errorf("it was renewed %d times in a day", renewals)
			}
		})
	}
	t.Run("a host that reports the certificate that it was given is not asked before its time", func(t *testing.T) {
		status := &v1alpha1.WindowsInstanceStatus{}
		from, to := noon.Add(-5*time.Minute), noon.Add(10*time.Minute)
		recordRenewed(status, certificateStatus(name, from, to), noon)
		RecordReported(status, spec, &plan.Facts{Identities: map[string]plan.IdentityFacts{name: {
			Current: &plan.CertificateFacts{NotBefore: from, NotAfter: to}}}}, noon)
		if got, want := status.Certificates[0].RenewAt.Time, from.Add(to.Sub(from)*3/4); !got.Equal(want) {
			t.Errorf("it is renewed at %s, and should be at %s", got, want)
		}
	})
}
