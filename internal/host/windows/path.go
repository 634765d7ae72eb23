package windows

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// drivePath is an absolute, cleaned Windows path on a drive: without ".", "..", "/" or doubled separators.
type drivePath struct {
	drive string // "C:"
	names []string
}

// parsePath parses an absolute path. It rejects names that Windows would reject or silently change (a trailing dot,
// a device name). The \\?\ form of the calls below would use such names literally. The error is fs.ErrInvalid.
func parsePath(path string) (drivePath, error) {
	path = strings.ReplaceAll(path, "/", `\`)
	if len(path) < 2 || path[1] != ':' || !isLetter(path[0]) || len(path) > 2 && path[2] != '\\' {
		return drivePath{}, fmt.Errorf("%w: the path is not an absolute path on a drive", fs.ErrInvalid)
	}
	p := drivePath{drive: strings.ToUpper(path[:2])}
	for name := range strings.SplitSeq(path[2:], `\`) {
		switch name {
		case "", ".":
		case "..":
			p.names = p.names[:max(0, len(p.names)-1)]
		default:
			if err := checkName(name); err != nil {
				return drivePath{}, err
			}
			p.names = append(p.names, name)
		}
	}
	return p, nil
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

// String returns the usual form: C:\k\kubelet.exe.
func (p drivePath) String() string { return p.drive + `\` + strings.Join(p.names, `\`) }

// extendedPath returns the form without the limit of 260 characters: \\?\C:\k\kubelet.exe.
func (p drivePath) extendedPath() string { return `\\?\` + p.String() }

// isRoot reports whether the path is the drive itself.
func (p drivePath) isRoot() bool { return len(p.names) == 0 }

// baseName returns the last name, or "" for the drive itself.
func (p drivePath) baseName() string {
	if p.isRoot() {
		return ""
	}
	return p.names[len(p.names)-1]
}

// childPath returns the path of an entry in the directory.
func (p drivePath) childPath(name string) drivePath {
	return drivePath{p.drive, append(slices.Clip(p.names), name)}
}

// isSamePath reports whether two paths are equal without regard to case.
func (p drivePath) isSamePath(other drivePath) bool {
	return strings.EqualFold(p.String(), other.String())
}

// siblingPath returns the path of an entry in the same directory. The path must not be the drive itself.
func (p drivePath) siblingPath(name string) drivePath {
	return drivePath{p.drive, append(slices.Clone(p.names[:len(p.names)-1]), name)}
}

// checkName rejects names that Windows forbids, changes, or interprets as a device.
func checkName(name string) error {
	control := func(r rune) bool { return r < ' ' }
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	switch {
	case strings.ContainsAny(name, `<>:"|?*`), strings.ContainsFunc(name, control):
		return fmt.Errorf("%w: the name %q has a character that Windows does not allow", fs.ErrInvalid, name)
	case len(name) > 255:
		return fmt.Errorf("%w: the name %.40q... is longer than 255 bytes", fs.ErrInvalid, name)
	case strings.HasSuffix(name, "."), strings.HasSuffix(name, " "):
		return fmt.Errorf("%w: the name %q ends in a dot or blank, which Windows would remove", fs.ErrInvalid, name)
	case isDevice(strings.TrimRight(stem, " ")):
		return fmt.Errorf("%w: the name %q is the name of a device", fs.ErrInvalid, name)
	}
	return nil
}

// isDevice reports whether a name, in lower case and without its extension, belongs to a DOS device.
func isDevice(stem string) bool {
	switch stem {
	case "con", "prn", "aux", "nul":
		return true
	}
	port, numbered := strings.CutPrefix(stem, "com")
	if !numbered {
		port, numbered = strings.CutPrefix(stem, "lpt")
	}
	return numbered && len(port) == 1 && port[0] >= '1' && port[0] <= '9'
}
