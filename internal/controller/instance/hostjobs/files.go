package hostjobs

import (
	"slices"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
)

// DigestsToSend returns the digests of the files or patches to send for the spec. A patch replaces a file if the host
// has the base file of the patch; present are the payload files on the host.
func DigestsToSend(spec nodespec.NodeSpec, present map[string]string, files *payload.Payload) []string {
	return PreferPatches(MissingFiles(spec, present), present, files.Patches)
}

// PreferPatches replaces files with patches if the host has their base files. The payload contains a patch only if the
// patch is smaller than the file.
func PreferPatches(lacking []string, present map[string]string, patches func(to string) []payload.Patch) []string {
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

// MissingFiles returns the digests of the payload files that the spec requires and the host lacks.
func MissingFiles(spec nodespec.NodeSpec, present map[string]string) []string {
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
