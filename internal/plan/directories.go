package plan

import (
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func (m *planner) makeDirectories() {
	for _, directory := range m.spec.Directories {
		if reason := directoryReason(m.facts, directory); reason != "" {
			m.addOperation(MakeDirectory{Directory: directory}, "%s", reason)
		}
	}
}

func directoryReason(facts Facts, directory nodespec.Directory) string {
	fact, there := facts.Files[directory.Path]
	switch {
	case !there:
		return "folder " + directory.Path + " does not exist"
	case !isPlainDirectory(fact):
		return directory.Path + " is " + kindOf(fact) + ", not a folder"
	case fact.Foreign && directory.Access.IsRestricted():
		return "folder " + directory.Path + " is owned by a non-administrator"
	case !isSameAccess(fact.Access, directory.Access):
		return accessReason("folder", directory.Path, directory.Access)
	}
	return ""
}

// isPlainDirectory reports whether the path is a directory, and not a link to a directory.
func isPlainDirectory(fact FileFact) bool { return fact.Directory && fact.LinkTarget == "" }

func kindOf(fact FileFact) string {
	if fact.LinkTarget != "" {
		return "a link to " + fact.LinkTarget
	}
	return "a file"
}

// DescribeDirectoryConflict returns the reason why the node cannot use the path as a directory, with instructions for
// the administrator; empty if usable. A link or a file of unknown purpose must not be replaced. Outside of C:\k, a
// directory owned by a user must not be adopted: the user may already have rights to the content. In C:\k, access to
// the complete tree is restricted.
func DescribeDirectoryConflict(path string, fact FileFact) string {
	switch {
	case !isPlainDirectory(fact):
		return path + " is " + kindOf(fact) + "; the node needs a folder there that only administrators can change: move it away"
	case fact.Foreign && !nodespec.IsWithin(path, nodespec.Root):
		return path + " is owned by a non-administrator, or a non-administrator may change its permissions; the node keeps " +
			"keys and secrets below it: check its content, then move it away or make Administrators the owner " +
			"(takeown /a /r /f, icacls /reset /t)"
	}
	return ""
}

// DescribeEntryConflict returns the reason why the node cannot use a directory with these entries, with instructions
// for the administrator; empty if usable. Non-administrators may have had access to the directory before, and a user
// keeps the rights to an entry after access to the directory is restricted.
func DescribeEntryConflict(folder string, entries []host.FileInfo) string {
	for _, entry := range entries {
		if entry.Foreign && nodespec.IsNodeEntry(folder, entry.Name) {
			return DescribeDirectoryConflict(entry.Path, FileFact{Directory: true, Foreign: true})
		}
	}
	return ""
}
