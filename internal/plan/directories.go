package plan

import (
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func (m *maker) makeDirectories() {
	for _, directory := range m.spec.Directories {
		if reason := directoryReason(m.facts, directory); reason != "" {
			m.add(MakeDirectory{Directory: directory}, "%s", reason)
		}
	}
}

func directoryReason(facts Facts, directory nodespec.Directory) string {
	fact, there := facts.Files[directory.Path]
	switch {
	case !there:
		return "folder " + directory.Path + " is not there"
	case !ownFolder(fact):
		return directory.Path + " is " + kindOf(fact) + " and not a folder"
	case fact.Foreign && directory.Access.Closed():
		return "folder " + directory.Path + " is owned by a non-administrator"
	case !sameAccess(fact.Access, directory.Access):
		return accessReason("folder", directory.Path, directory.Access)
	}
	return ""
}

// ownFolder reports whether a folder is at the path, and no link to one.
func ownFolder(fact FileFact) bool { return fact.Directory && fact.LinkTarget == "" }

func kindOf(fact FileFact) string {
	if fact.LinkTarget != "" {
		return "a link to " + fact.LinkTarget
	}
	return "a file"
}

// FolderObstacle says why the node cannot use what is at the path of one of its folders, and what to do; empty when it
// can. A link or a file must not be replaced: nobody knows who needs it. A folder outside of C:\k that a user owns must
// not be taken over: the user may keep rights to what is in it already. C:\k itself is closed with all that is in it.
func FolderObstacle(path string, fact FileFact) string {
	switch {
	case !ownFolder(fact):
		return path + " is " + kindOf(fact) + "; the node needs a folder there that only administrators can change: move it away"
	case fact.Foreign && !nodespec.Within(path, nodespec.Root):
		return path + " is owned by a non-administrator, or a non-administrator may change its permissions; the node keeps " +
			"keys and secrets below it: check its content, then move it away or make Administrators the owner " +
			"(takeown /a /r /f, icacls /reset /t)"
	}
	return ""
}

// EntryObstacle returns why the node cannot use a folder with these entries, and what to do; empty if it can. The folder
// may have been open before, and a user keeps the rights to an entry after the folder is closed.
func EntryObstacle(folder string, entries []host.FileInfo) string {
	for _, entry := range entries {
		if entry.Foreign && nodespec.IsNodeEntry(folder, entry.Name) {
			return FolderObstacle(entry.Path, FileFact{Directory: true, Foreign: true})
		}
	}
	return ""
}
