package hostjobs

import (
	"slices"
	"testing"

	"github.com/windows-machine-config/wmco/internal/payload"
)

func TestPreferPatches_OnlyIfHostHasBaseFile(t *testing.T) {
	patches := func(to string) []payload.Patch {
		return map[string][]payload.Patch{"kubelet-3": {
			{From: "kubelet-2", To: "kubelet-3", SHA256: "small"}, {From: "kubelet-1", To: "kubelet-3", SHA256: "larger"},
		}}[to]
	}
	for name, c := range map[string]struct {
		present []string
		want    []string
	}{
		"a host that has nothing gets files": {nil, []string{"kubelet-3", "proxy-3"}},
		"one with the last release gets the patch to it": {[]string{"kubelet-2", "proxy-2"},
			[]string{"small", "proxy-3"}},
		"one with an older release gets the patch from there": {[]string{"kubelet-1"}, []string{"larger", "proxy-3"}},
		"of two patches that fit the smaller is taken": {[]string{"kubelet-1", "kubelet-2"},
			[]string{"small", "proxy-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			present := map[string]string{}
			for _, sum := range c.present {
				present[sum] = `C:\k\releases\` + sum
			}
			if got := PreferPatches([]string{"kubelet-3", "proxy-3"}, present, patches); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
