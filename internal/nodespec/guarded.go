package nodespec

import "github.com/windows-machine-config/wmco/internal/host"

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
		administrators(`C:\var\lib\cni`), administrators(`C:\ProgramData\containerd`),
	}
}
