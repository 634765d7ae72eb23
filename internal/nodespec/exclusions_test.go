package nodespec

import (
	"slices"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

//
func TestExclusions_OnlyContainerRuntimePrograms(t *testing.T) {
	spec := mustMake(t, testInputs())
	i := slices.IndexFunc(spec.Releases, func(r Release) bool { return r.Component == "containerd" })
	directory := spec.Releases[i].Directory
	want := []host.Exclusion{
		{Kind: host.ExcludeProcess, Value: directory + `\containerd.exe`},
		{Kind: host.ExcludeProcess, Value: directory + `\containerd-shim-runhcs-v1.exe`},
	}
	if !slices.Equal(spec.Exclusions, want) {
		t.Errorf("got %v", spec.Exclusions)
	}
	t.Run("by the path that Windows knows their processes by, and not by that of a link", func(t *testing.T) {
		for _, exclusion := range spec.Exclusions {
			if slices.ContainsFunc(spec.Links, func(link Link) bool { return IsSamePath(link.Path, exclusion.Value) }) {
				t.Errorf("%s is a link", exclusion.Value)
			}
		}
		if containerd := host.SplitCommandLine(spec.Services[0].CommandLine)[0]; containerd != spec.Exclusions[0].Value {
			t.Errorf("the service runs %s", containerd)
		}
	})
}
