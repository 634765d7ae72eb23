package windows

import (
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Security descriptors, in the security descriptor definition language (SDDL), of what only SYSTEM (SY) and the
// Administrators group (BA) may use: D:P is a protected DACL, which takes nothing from the folder above; FA is every
// right on files; OICI hands it down to files and folders below. The owner is set, too: an owner may always change the
// DACL, and the owner of a folder that was there before could be anyone who may write to the drive's root.
const (
	administratorsFileSDDL   = "O:BAD:P(A;;FA;;;SY)(A;;FA;;;BA)"
	administratorsFolderSDDL = "O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"
)

// accessOf reads who may use a file or folder from its security descriptor: AccessAdministrators only when its owner
// and everyone with any right is SYSTEM or Administrators and nothing comes from above; all else is AccessInherited.
func accessOf(sddl string) host.Access {
	owner := sddlPart(sddl, "O:")
	dacl := sddlPart(sddl, "D:")
	flags, entries, _ := strings.Cut(dacl, "(")
	if !trusted(owner) || !strings.HasPrefix(flags, "P") || entries == "" {
		return host.AccessInherited
	}
	for entry := range strings.SplitSeq(entries, "(") {
		// ace_type;ace_flags;rights;object_guid;inherit_object_guid;account_sid
		fields := strings.Split(strings.TrimRight(entry, ")"), ";")
		if len(fields) != 6 || fields[0] != "A" || !trusted(fields[5]) {
			return host.AccessInherited
		}
	}
	return host.AccessAdministrators
}

// trusted reports whether an SDDL SID string is SYSTEM or the Administrators group, as alias or in full.
func trusted(sid string) bool {
	switch sid {
	case "SY", "S-1-5-18", "BA", "S-1-5-32-544":
		return true
	}
	return false
}

// sddlPart returns one of the parts O:, G:, D: and S: of a security descriptor, without its letter.
func sddlPart(sddl, part string) string {
	depth := 0
	start := -1
	for i := 0; i+1 < len(sddl); i++ {
		switch {
		case sddl[i] == '(':
			depth++
		case sddl[i] == ')':
			depth--
		case depth == 0 && sddl[i+1] == ':' && strings.ContainsRune("OGDS", rune(sddl[i])):
			if start >= 0 {
				return sddl[start:i]
			}
			if sddl[i:i+2] == part {
				start = i + 2
			}
			i++
		}
	}
	if start < 0 {
		return ""
	}
	return sddl[start:]
}
