package soak

import (
	"fmt"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host/fake"
)

func TestCountFiles_GrowsOnlyAboveAgentRetention(t *testing.T) {
	const otherObjects = 3
	certificates := func(held int) map[string]fake.FileSnapshot {
		files := map[string]fake.FileSnapshot{}
		for i := range otherObjects {
			files[fmt.Sprintf(`C:\k\program-%d.exe`, i)] = fake.FileSnapshot{}
		}
		for i := range held {
			files[fmt.Sprintf(`C:\k\hybrid-overlay-node\pki\ovnkube-client-%d.pem`, i)] = fake.FileSnapshot{}
		}
		return files
	}
	full := countFiles(certificates(4))
	for held, want := range map[int]int{0: full, 1: full, 4: full, 5: full + 1, 30: full + 26} {
		if got := countFiles(certificates(held)); got != want {
			t.Errorf("with %d certificates of OVN-Kubernetes %d files are counted; want %d", held, got, want)
		}
	}
	more := certificates(2)
	more[`C:\k\program-new.exe`] = fake.FileSnapshot{}
	if got := countFiles(more); got != full+1 {
		t.Errorf("with another program %d files are counted; want %d", got, full+1)
	}
}
