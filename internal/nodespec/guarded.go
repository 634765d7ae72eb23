package nodespec

import (
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
)

// KubeletDirectory is the kubelet's directory.
const KubeletDirectory = `C:\var\lib\kubelet`

// GuardedDirectories returns the directories outside of C:\k for keys, Secrets of pods, logs and images, parents
// before children. Any user may create directories in C:\, owns them, and through inherited rules may add files to
// directories of other owners. So access to each directory is restricted: otherwise a user could create directories
// before the node does, or replace the node's directories. Some directories must be readable for log collectors and
// for users in containers, who have the rights of all users. Containers must be able to write to their volumes further
// below.
func GuardedDirectories() []Directory {
	return []Directory{
		{`C:\var`, host.AccessReadable}, {`C:\var\lib`, host.AccessReadable}, {LogRoot, host.AccessReadable},
		{KubeletDirectory, host.AccessReadable},
		newAdminDirectory(cniState), newAdminDirectory(ContainerdData),
	}
}

// cniState is the directory in which CNI plugins record the addresses of pods.
const cniState = `C:\var\lib\cni`

// NodeEntryDirectories returns the directories outside of C:\k with entries owned by the node, parents before children.
func NodeEntryDirectories() []string {
	return []string{LogRoot, KubeletDirectory, cniState, ContainerdData, containerdRoot, containerdState}
}

// IsNodeEntry reports whether the kubelet, containerd or a CNI plugin uses an entry of a directory. In C:\var\log,
// other programs and containers may have their own directories.
func IsNodeEntry(folder, name string) bool {
	if IsSamePath(folder, LogRoot) {
		return IsSamePath(name, "pods") || IsSamePath(name, "containers")
	}
	return slices.ContainsFunc(NodeEntryDirectories(), func(own string) bool { return IsSamePath(folder, own) })
}
