package nodespec

import (
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
)

// KubeletDirectory is the kubelet's folder.
const KubeletDirectory = `C:\var\lib\kubelet`

// GuardedDirectories returns the folders outside of C:\k below which a node keeps keys, the Secrets of pods, logs and
// images, parents before children. Any user may make folders in C:\ and owns them, and by what C:\ hands down adds to
// those of others. So each is closed: otherwise a user could have folders there before the node, or exchange the node's.
// Collectors of logs and the users in containers, who have the rights of all users, must be able to read some, and
// containers to write to their volumes further below.
func GuardedDirectories() []Directory {
	return []Directory{
		{`C:\var`, host.AccessReadable}, {`C:\var\lib`, host.AccessReadable}, {LogRoot, host.AccessReadable},
		{KubeletDirectory, host.AccessReadable},
		administrators(cniState), administrators(ContainerdData),
	}
}

// cniState is the folder in which CNI plugins keep the addresses of pods.
const cniState = `C:\var\lib\cni`

// NodeEntryFolders returns the folders outside of C:\k with entries that are the node's, parents before children.
func NodeEntryFolders() []string {
	return []string{LogRoot, KubeletDirectory, cniState, ContainerdData, containerdRoot, containerdState}
}

// IsNodeEntry reports whether the kubelet, containerd or a CNI plugin uses an entry of a folder. In C:\var\log, other
// programs and containers may have folders of their own, too.
func IsNodeEntry(folder, name string) bool {
	if SamePath(folder, LogRoot) {
		return SamePath(name, "pods") || SamePath(name, "containers")
	}
	return slices.ContainsFunc(NodeEntryFolders(), func(own string) bool { return SamePath(folder, own) })
}
