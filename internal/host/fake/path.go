package fake

import (
	"fmt"
	"slices"
	"strings"
)

// maxLinks is the maximum number of symbolic links that Windows follows in one path.
const maxLinks = 63

// splitPath splits an absolute path on C: into its names.
func splitPath(path string) ([]string, error) {
	path = strings.ReplaceAll(path, "/", `\`)
	if len(path) < 2 || path[1] != ':' || (len(path) > 2 && path[2] != '\\') {
		return nil, fmt.Errorf("%w (the path must be absolute)", errName)
	}
	if path[0] != 'C' && path[0] != 'c' {
		return nil, errPathNotFound
	}
	var names []string
	for name := range strings.SplitSeq(path[2:], `\`) {
		switch name {
		case "", ".":
		case "..":
			names = names[:max(0, len(names)-1)]
		default:
			if err := checkName(name); err != nil {
				return nil, err
			}
			names = append(names, name)
		}
	}
	return names, nil
}

var reservedNames = []string{
	"con", "prn", "aux", "nul", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9",
	"lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
}

// checkName rejects names that Windows does not allow or silently changes.
func checkName(name string) error {
	control := func(r rune) bool { return r < ' ' }
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	switch {
	case strings.ContainsAny(name, `<>:"|?*`), strings.ContainsFunc(name, control), len(name) > 255,
		strings.HasSuffix(name, "."), strings.HasSuffix(name, " "),
		slices.Contains(reservedNames, strings.TrimRight(stem, " ")):
		return fmt.Errorf("%q: %w", name, errName)
	}
	return nil
}

func joinPath(names []string) string { return `C:\` + strings.Join(names, `\`) }

// foldCase returns a name in the form for case-insensitive comparison.
func foldCase(name string) string { return strings.ToLower(name) }

// linkDestination returns the destination of a link in the directory, as names from the root.
func linkDestination(folder []string, target string) ([]string, error) {
	if len(target) > 1 && target[1] == ':' {
		return splitPath(target)
	}
	if strings.HasPrefix(target, `\`) || strings.HasPrefix(target, "/") {
		return splitPath("C:" + target)
	}
	return splitPath(joinPath(folder) + `\` + target)
}
