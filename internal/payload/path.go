package payload

import (
	"fmt"
	"strings"
)

// maxPathLength leaves space for the release directory within Windows' limit of 260 characters.
const maxPathLength = 180

// validatePath validates a relative Windows path of one file inside the target directory. Source: "Naming Files,
// Paths, and Namespaces", Win32 documentation.
func validatePath(path string) error {
	if path == "" {
		return fmt.Errorf("a file has no path")
	}
	if len(path) > maxPathLength {
		return fmt.Errorf("file %.40q…: the path is longer than %d characters", path, maxPathLength)
	}
	for _, name := range strings.Split(path, `\`) {
		if why := describeNameFault(name); why != "" {
			return fmt.Errorf("file %q: %s", path, why)
		}
	}
	return nil
}

// describeNameFault returns the fault of one part of a path, or an empty string.
func describeNameFault(name string) string {
	switch {
	case name == "":
		return "the path is absolute or has an empty part"
	case name == "." || name == "..":
		return "the path contains a part . or .."
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "a part of the path ends in a full stop or a space, which Windows removes"
	case strings.ContainsFunc(name, func(r rune) bool {
		return r < 0x20 || r > 0x7e || strings.ContainsRune(`<>:"/|?*`, r)
	}):
		return "the path contains a character that is not allowed"
	case isReservedName(name):
		return "the path contains a Windows device name"
	}
	return ""
}

// isReservedName reports whether the name is a device name, which Windows reserves with any extension.
func isReservedName(name string) bool {
	base, _, _ := strings.Cut(strings.ToUpper(name), ".")
	base = strings.TrimRight(base, " ")
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	return len(base) == 4 && (strings.HasPrefix(base, "COM") || strings.HasPrefix(base, "LPT")) &&
		base[3] >= '0' && base[3] <= '9'
}
