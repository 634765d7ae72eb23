package upgrade

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/payload"
	labpayload "github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// checkPrograms compares the programs on a host with the payload of a release. Each file must differ from the
// previous release, except the files of kubelet and agent.
func (l lab) checkPrograms(name, before string, h *testenv.Host) {
	l.Helper()
	for _, component := range releaseByName(l.T, name).payload.Components(payload.Target{Platform: withoutMachines, Kubernetes: labpayload.Kubernetes}) {
		former, ok := releaseByName(l.T, before).payload.Manifest().Component(component.Name)
		same := component.Name == "kubelet" || component.Name == payload.ComponentAgent
		if !ok || slices.Equal(former.Files, component.Files) != same {
			l.Errorf("%s: its files in %s are the files of %s: %v", component.Name, name, before, !same)
		}
		for _, file := range component.Files {
			if got := l.digestOnHost(h, component.Name, file.Path); got != file.SHA256 {
				l.Errorf("%s of %s is %s, and in the release %s", file.Path, component.Name, got, file.SHA256)
			}
		}
	}
}

// notServices lists programs that are not services: other programs start them by these paths when pods start.
var notServices = map[string]string{
	"cni": `C:\k\cni\`, "containerd-shim-runhcs-v1.exe": `C:\k\containerd\`,
}

// digestOnHost returns the sha256 of a program's file at the path in notServices, or otherwise at the path of its
// running process.
func (l lab) digestOnHost(h *testenv.Host, component, file string) string {
	l.Helper()
	path := cmp.Or(notServices[component], notServices[file])
	if path != "" {
		path += file
	} else {
		processes := slices.DeleteFunc(h.Machine().RunningProcesses(), func(p host.Process) bool { return p.Name != file })
		if len(processes) == 0 {
			return "not running"
		}
		path = processes[0].Path
	}
	content, err := h.Machine().Drive().ReadFile(path)
	l.requireNoError(err)
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
