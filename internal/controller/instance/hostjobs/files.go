package hostjobs

import (
	"slices"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
)

// Lacking returns the digests of what is sent to a host with these payload files for the spec: of files, or of patches
// where the host has what they are made of.
func Lacking(spec nodespec.NodeSpec, present map[string]string, files *payload.Payload) []string {
	return Patched(Missing(spec, present), present, files.Patches)
}

// Patched puts patches in the place of files, where the host has what they are made of. A patch is in the payload only
// when it is smaller than the file.
func Patched(lacking []string, present map[string]string, patches func(to string) []payload.Patch) []string {
	var chosen []string
	for _, sum := range lacking {
		list := patches(sum)
		i := slices.IndexFunc(list, func(p payload.Patch) bool { _, there := present[p.From]; return there })
		if i >= 0 {
			sum = list[i].SHA256
		}
		chosen = append(chosen, sum)
	}
	return chosen
}

// Missing returns the payload files that the spec wants and the host lacks.
func Missing(spec nodespec.NodeSpec, present map[string]string) []string {
	var result []string
	for _, release := range spec.Releases {
		for _, file := range release.Files {
			if _, ok := present[file.SHA256]; !ok {
				result = append(result, file.SHA256)
			}
		}
	}
	slices.Sort(result)
	return slices.Compact(result)
}
