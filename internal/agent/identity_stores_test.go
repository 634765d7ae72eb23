package agent_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
)

// Programs with a new certificate every day must not fill the disk with keys, or lose a key in use.
func TestService_DeletesFormerCertificates(t *testing.T) {
	t.Parallel()
	r := newNodeRig(t, func(r *rig) { r.validity = 3 * time.Hour })
	current := linkTarget(r)
	file := func(name string) string { return pki + `\` + name }
	for day := 1; day <= 9; day++ {
		r.must(r.Drive().WriteFile(file(fmt.Sprintf("ovnkube-client-2026-01-%02d-10-11-12.pem", day)), []byte("key")))
	}
	foreign := []string{"ovnkube-client-2026-01-01.pem", "notes.pem", "other-client-2026-01-01-10-11-12.pem", "kubelet.crt"}
	for _, name := range foreign {
		r.must(r.Drive().WriteFile(file(name), []byte("other")))
	}
	r.must(r.Drive().Symlink(file("ovnkube-client-2026-01-02-10-11-12.pem"), file("ovnkube-client-current.pem")))
	r.advanceTime(timeouts.StoreCheckInterval)
	infos, err := r.Drive().ReadDir(pki)
	r.must(err)
	var left []string
	for _, info := range infos {
		left = append(left, info.Name)
	}
	for _, name := range append(slices.Clone(foreign), "ovnkube-client-2026-01-02-10-11-12.pem", "ovnkube-client-2026-01-08-10-11-12.pem",
		"ovnkube-client-2026-01-09-10-11-12.pem", "ovnkube-client-current.pem") {
		if !slices.Contains(left, name) {
			t.Errorf("%s is gone", name)
		}
	}
	if len(left) != len(foreign)+4+2 || !r.hasPaths(current) {
		t.Errorf("left %q", left)
	}
	if p := r.runPlan(r.fullSpec()); len(p.Steps) != 0 || len(r.Events()) != 0 {
		t.Errorf("left to do: %s; events %+v", formatSteps(p), r.Events())
	}
}
