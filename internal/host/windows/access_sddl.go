package windows

import (
	"maps"
	"strconv"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Security descriptors, in the security descriptor definition language (SDDL), of what only SYSTEM (SY) and the
// Administrators group (BA) may change: D:P is a protected DACL, which takes nothing from the folder above; FA is every
// right on files; OICI hands it down to files and folders below. The owner is set, too: an owner may always change the
// DACL, and the owner of a folder that was there before could be anyone who may write to the drive's root.
//
// In a readable folder, users (BU) may read and execute (0x1200a9). Two entries are for folders below only (IO), as a
// fresh Windows has them on C:\: users may add files and folders (0x6), and creators (CO) own what they add. Containers
// whose user is no administrator write to their volumes by these.
const (
	administratorsFileSDDL   = "O:BAD:P(A;;FA;;;SY)(A;;FA;;;BA)"
	administratorsFolderSDDL = "O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"
	readableFolderSDDL       = administratorsFolderSDDL + "(A;OICI;0x1200a9;;;BU)(A;CIIO;0x6;;;BU)(A;OICIIO;FA;;;CO)"
)

const (
	readRights    = 0x1200a9                       // FILE_GENERIC_READ | FILE_GENERIC_EXECUTE
	addRights     = 0x6                            // FILE_ADD_FILE | FILE_ADD_SUBDIRECTORY
	fileRights    = 0x1f01ff                       // FILE_ALL_ACCESS
	controlRights = 0x40000 | 0x80000 | 0x10000000 // WRITE_DAC | WRITE_OWNER | GENERIC_ALL
	allRights     = uint32(0xffff_ffff)            // of an unknown text
)

// sddlOf returns the security descriptor of a closed access; empty where there is none.
func sddlOf(access host.Access, folder bool) string {
	switch {
	case access == host.AccessAdministrators && folder:
		return administratorsFolderSDDL
	case access == host.AccessAdministrators:
		return administratorsFileSDDL
	case access == host.AccessReadable && folder:
		return readableFolderSDDL
	}
	return ""
}

// ace is an entry of an access control list.
type ace struct {
	kind, flags, sid string
	rights           uint32
}

// Accounts of entries, as SDDL abbreviates them.
const (
	users   = "BU"
	creator = "CO"
)

// inherited reports whether the entry comes from the folder above.
func (a ace) inherited() bool {
	for i := 0; i+1 < len(a.flags); i += 2 {
		if a.flags[i:i+2] == "ID" {
			return true
		}
	}
	return false
}

// accessOf reads who may use a file or folder from its security descriptor. It is AccessAdministrators only when its
// owner and everyone with any right is SYSTEM or Administrators and nothing comes from above, AccessReadable with exactly
// the further entries of a readable folder; all else is AccessInherited.
func accessOf(sddl string) host.Access {
	protected, entries, ok := entriesOf(sddl)
	owner, _ := sddlPart(sddl, "O:")
	if !trusted(owner) || !ok || !protected || len(entries) == 0 {
		return host.AccessInherited
	}
	others := map[ace]bool{}
	for _, entry := range entries {
		switch {
		case entry.kind != "A":
			return host.AccessInherited
		case !trusted(entry.sid):
			others[entry] = true
		}
	}
	if len(others) == 0 {
		return host.AccessAdministrators
	}
	if maps.Equal(others, map[ace]bool{
		{"A", "OICI", users, readRights}: true, {"A", "CIIO", users, addRights}: true,
		{"A", "OICIIO", creator, fileRights}: true,
	}) {
		return host.AccessReadable
	}
	return host.AccessInherited
}

// foreign reports whether an account that is neither SYSTEM, Administrators nor TrustedInstaller owns what has this
// security descriptor, or has an explicit right to change its permissions. Inherited rights are up to the folder above.
// A descriptor that cannot be read, in whole or in part, is foreign. An entry of any type but a refusal grants rights.
func foreign(sddl string) bool {
	if owner, _ := sddlPart(sddl, "O:"); !trusted(owner) && owner != trustedInstaller {
		return true
	}
	_, entries, ok := entriesOf(sddl)
	if !ok {
		return true
	}
	for _, entry := range entries {
		known := trusted(entry.sid) || entry.sid == trustedInstaller || entry.sid == creator
		if !known && !entry.inherited() && entry.kind != "D" && entry.rights&controlRights != 0 {
			return true
		}
	}
	return false
}

// entriesOf returns the entries of the discretionary access control list (DACL) in a security descriptor, and reports
// whether the list is protected from inheritance. ok is false if the list cannot be read, and if there is no list:
// Windows grants everyone all rights then.
func entriesOf(sddl string) (protected bool, entries []ace, ok bool) {
	dacl, ok := sddlPart(sddl, "D:")
	if !ok {
		return false, nil, false
	}
	text, list, _ := strings.Cut(dacl, "(")
	flags, ok := daclFlags(text)
	if !ok || flags[noAccessControl] {
		return false, nil, false
	}
	if list == "" {
		return flags[protectedList], nil, true
	}
	for entry := range strings.SplitSeq(list, "(") {
		// ace_type;ace_flags;rights;object_guid;inherit_object_guid;account_sid
		entry, closed := strings.CutSuffix(entry, ")")
		fields := strings.Split(entry, ";")
		if len(fields) != 6 || !closed {
			return false, nil, false
		}
		entries = append(entries, ace{kind: fields[0], flags: fields[1], rights: rightsOf(fields[2]), sid: alias(fields[5])})
	}
	return flags[protectedList], entries, true
}

// Flags of a list, as SDDL writes them before the entries, in any order and without a separator.
const (
	protectedList   = "P"
	noAccessControl = "NO_ACCESS_CONTROL" // a null DACL: everyone has all rights
)

// daclFlags returns the set of flags in a text; ok is false if the text contains anything else.
func daclFlags(text string) (flags map[string]bool, ok bool) {
	flags = map[string]bool{}
	for text != "" {
		known := false
		for _, flag := range []string{protectedList, "AR", "AI", noAccessControl} {
			if rest, found := strings.CutPrefix(text, flag); found {
				flags[flag], text, known = true, rest, true
			}
		}
		if !known {
			return nil, false
		}
	}
	return flags, true
}

// rightsOf reads the rights of an entry: a number, or pairs of letters. All rights, if it is neither.
func rightsOf(text string) uint32 {
	if digits, hex := strings.CutPrefix(text, "0x"); hex {
		if number, err := strconv.ParseUint(digits, 16, 32); err == nil {
			return uint32(number)
		}
		return allRights
	}
	if len(text)%2 != 0 {
		return allRights
	}
	rights := uint32(0)
	for i := 0; i < len(text); i += 2 {
		rights |= rightOf(text[i : i+2])
	}
	return rights
}

// rightOf returns the right of a pair of letters. Windows writes the rights of folders with the letters that Active
// Directory has for the same bits.
func rightOf(letters string) uint32 {
	switch letters {
	case "FA":
		return fileRights
	case "FR":
		return 0x120089
	case "FW":
		return 0x120116
	case "FX":
		return 0x1200a0
	case "RC":
		return 0x20000
	}
	for bit, name := range strings.Fields("CC DC LC SW RP WP DT LO CR") {
		if name == letters {
			return 1 << bit
		}
	}
	return allRights // among them SD, WD, WO and the generic ones
}

// trusted reports whether an SDDL SID string is SYSTEM or the Administrators group, as alias or in full.
func trusted(sid string) bool {
	switch sid {
	case "SY", "S-1-5-18", "BA", "S-1-5-32-544":
		return true
	}
	return false
}

// trustedInstaller owns the files of Windows itself. SDDL has no alias for it.
const trustedInstaller = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"

// alias returns the short form of an SDDL SID string that has one here.
func alias(sid string) string {
	switch sid {
	case "S-1-5-32-545":
		return users
	case "S-1-3-0":
		return creator
	}
	return sid
}

// sddlPart returns one of the parts O:, G:, D: and S: of a security descriptor without its letter, and reports whether
// the descriptor has the part.
func sddlPart(sddl, part string) (text string, found bool) {
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
				return sddl[start:i], true
			}
			if sddl[i:i+2] == part {
				start = i + 2
			}
			i++
		}
	}
	if start < 0 {
		return "", false
	}
	return sddl[start:], true
}
