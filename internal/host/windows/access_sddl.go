package windows

import (
	"maps"
	"strconv"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Security descriptors, in the security descriptor definition language (SDDL), for entries that only SYSTEM (SY) and
// the Administrators group (BA) may change. D:P is a protected DACL, which inherits nothing from the parent
// directory. FA grants all rights on files, and OICI propagates an entry to files and directories below. The owner
// is also set, because an owner may always change the DACL. Any account with write access to the root of the drive
// can own an existing directory.
//
// In a readable directory, users (BU) may read and execute (0x1200a9). Two entries apply only to directories below
// (IO), like the entries of C:\ in a new Windows installation: users may add files and directories (0x6), and
// creators (CO) own the added entries. Containers with a non-administrator user need these rights to write to
// volumes.
const (
	administratorsFileSDDL = "O:BAD:P(A;;FA;;;SY)(A;;FA;;;BA)"
	administratorsDirSDDL  = "O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"
	readableDirSDDL        = administratorsDirSDDL + "(A;OICI;0x1200a9;;;BU)(A;CIIO;0x6;;;BU)(A;OICIIO;FA;;;CO)"
)

const (
	readRights    = 0x1200a9                       // FILE_GENERIC_READ | FILE_GENERIC_EXECUTE
	addRights     = 0x6                            // FILE_ADD_FILE | FILE_ADD_SUBDIRECTORY
	fileRights    = 0x1f01ff                       // FILE_ALL_ACCESS
	controlRights = 0x40000 | 0x80000 | 0x10000000 // WRITE_DAC | WRITE_OWNER | GENERIC_ALL
	allRights     = uint32(0xffff_ffff)            // for unknown text
)

// sddlOf returns the security descriptor of a restricted access, or "" if the access has no descriptor.
func sddlOf(access host.Access, folder bool) string {
	switch {
	case access == host.AccessAdministrators && folder:
		return administratorsDirSDDL
	case access == host.AccessAdministrators:
		return administratorsFileSDDL
	case access == host.AccessReadable && folder:
		return readableDirSDDL
	}
	return ""
}

// ace is an entry of an access control list.
type ace struct {
	kind, flags, sid string
	rights           uint32
}

// SDDL abbreviations of accounts.
const (
	users   = "BU"
	creator = "CO"
)

// isInherited reports whether the entry is inherited from the parent directory.
func (a ace) isInherited() bool {
	for i := 0; i+1 < len(a.flags); i += 2 {
		if a.flags[i:i+2] == "ID" {
			return true
		}
	}
	return false
}

// accessOf returns the access that a security descriptor grants. AccessAdministrators requires that the owner and
// all accounts with any right are SYSTEM or Administrators, and that no entry is inherited. AccessReadable requires
// the same plus exactly the further entries of a readable directory. All other descriptors are AccessInherited.
func accessOf(sddl string) host.Access {
	protected, entries, ok := entriesOf(sddl)
	owner, _ := sddlPart(sddl, "O:")
	if !isTrustedSID(owner) || !ok || !protected || len(entries) == 0 {
		return host.AccessInherited
	}
	others := map[ace]bool{}
	for _, entry := range entries {
		switch {
		case entry.kind != "A":
			return host.AccessInherited
		case !isTrustedSID(entry.sid):
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

// isForeignControlled reports whether an account other than SYSTEM, Administrators and TrustedInstaller owns the entry
// with this security descriptor, or has an explicit right to change its permissions. Inherited rights are the
// responsibility of the parent directory. A descriptor that is not completely readable is foreign. Every entry type
// except a denial grants rights.
func isForeignControlled(sddl string) bool {
	if owner, _ := sddlPart(sddl, "O:"); !isTrustedSID(owner) && owner != trustedInstaller {
		return true
	}
	_, entries, ok := entriesOf(sddl)
	if !ok {
		return true
	}
	for _, entry := range entries {
		known := isTrustedSID(entry.sid) || entry.sid == trustedInstaller || entry.sid == creator
		if !known && !entry.isInherited() && entry.kind != "D" && entry.rights&controlRights != 0 {
			return true
		}
	}
	return false
}

// entriesOf returns the entries of the discretionary access control list (DACL) in a security descriptor, and
// reports whether the list is protected from inheritance. ok is false if the list cannot be parsed or is missing:
// without a list, Windows grants everyone all rights.
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
		entries = append(entries, ace{kind: fields[0], flags: fields[1], rights: rightsOf(fields[2]), sid: shortenSID(fields[5])})
	}
	return flags[protectedList], entries, true
}

// Flags of a list. SDDL writes the flags before the entries, in any order and without a separator.
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

// rightsOf parses the rights of an entry: a number or pairs of letters. It returns all rights for any other text.
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

// rightOf returns the right of a pair of letters. For the rights of directories, Windows uses the letters that
// Active Directory defines for the same bits.
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
	return allRights // including SD, WD, WO and the generic rights
}

// isTrustedSID reports whether an SDDL SID string is SYSTEM or the Administrators group, as an alias or a complete SID.
func isTrustedSID(sid string) bool {
	switch sid {
	case "SY", "S-1-5-18", "BA", "S-1-5-32-544":
		return true
	}
	return false
}

// trustedInstaller is the SID of TrustedInstaller, which owns the files of Windows itself. SDDL has no alias for
// this account.
const trustedInstaller = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"

// shortenSID returns the SDDL alias of a known SID string, or the string itself.
func shortenSID(sid string) string {
	switch sid {
	case "S-1-5-32-545":
		return users
	case "S-1-3-0":
		return creator
	}
	return sid
}

// sddlPart returns the text after the label O:, G:, D: or S: in a security descriptor, and reports whether the
// descriptor contains the label.
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
