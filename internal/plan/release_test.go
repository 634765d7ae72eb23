package plan_test

import (
	"slices"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
)

func TestRelease_InterruptedInstallationRepeated(t *testing.T) {
	m, spec := newConfiguredModel(t)
	delete(m.Files, spec.Releases[2].Manifest())
	want := []string{"StopService kube-proxy", "StopService overlay", "InstallRelease overlay", "StartService overlay",
		"StartService kube-proxy"}
	if got := namesOfSteps(plan.Make(m.Facts, spec).Steps); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// Containers keep their original shim, however long ago containerd was upgraded.
func TestRelease_PreviousReleaseKeptWhileInUse(t *testing.T) {
	m, spec := newConfiguredModel(t)
	former := spec.Releases[0].Directory
	m.Processes = append(m.Processes, host.Process{PID: 4711, Name: "containerd-shim-runhcs-v1.exe",
		Path: former + `\containerd-shim-runhcs-v1.exe`})
	addRelease(&spec, "containerd", "v2")
	remove := plan.Name(plan.RemovePath{Path: former})
	if steps := namesOfSteps(convergeModel(t, m, spec, -1)); slices.Contains(steps, remove) ||
		!slices.Contains(steps, "InstallRelease containerd") {
		t.Errorf("while a container runs: %q", steps)
	}
	m.Processes = m.Processes[:len(m.Processes)-1]
	if steps := namesOfSteps(plan.Make(m.Facts, spec).Steps); !slices.Equal(steps, []string{remove}) {
		t.Errorf("when none does any more: %q", steps)
	}
}
