package nodespec

import (
	"net/netip"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// ExpressMirror converts a mirror of a source to containerd's format. Both have the form of an ImageDigestMirrorSet
// or ImageTagMirrorSet: host[:port][/path].
//
// containerd has mirrors for complete hosts. It requests https://<mirrorHost>/v2/<path>/<repository as in the
// image's name>, so a mirror can be converted if its path ends in the source's path; path is the part before.
// containerd then requests every image of sourceHost from the mirror. ok is false for a mirror with another path,
// for a wildcard (*.example.com: containerd has no directory for multiple hosts, except the directory for all) and
// for invalid names (see IsRegistryHost).
func ExpressMirror(source, mirror string) (sourceHost, mirrorHost, path string, ok bool) {
	sourceHost, sourcePath, sourceOK := splitName(source)
	mirrorHost, mirrorPath, mirrorOK := splitName(mirror)
	if !sourceOK || !mirrorOK || !IsRegistryHost(sourceHost) {
		return "", "", "", false
	}
	if sourcePath == "" {
		return sourceHost, mirrorHost, mirrorPath, true
	}
	rest, ends := strings.CutSuffix("/"+mirrorPath, "/"+sourcePath)
	if !ends {
		return "", "", "", false
	}
	return sourceHost, mirrorHost, strings.TrimPrefix(rest, "/"), true
}

// splitName splits host[:port][/path], and reports whether both parts are valid.
func splitName(name string) (host, path string, ok bool) {
	host, path, slash := strings.Cut(name, "/")
	return host, path, isEndpointHost(host) && isRepositoryPath(path) && (path != "" || !slash)
}

// IsWildcardMatch reports whether a host with any port is below the domain of a wildcard such as *.example.com.
func IsWildcardMatch(pattern, host string) bool {
	domain, ok := strings.CutPrefix(pattern, "*.")
	if !ok || domain == "" {
		return false
	}
	name, _, _ := strings.Cut(host, ":")
	return strings.HasSuffix(name, "."+domain)
}

// IsRegistryHost reports whether containerd on Windows supports settings for an image host. The host must be a DNS
// name in lower case or an IPv4 address, with or without a port, and its directory name must be allowed by Windows.
// IPv6 addresses are not supported: without the colons in directory names, different addresses would share a
// directory.
func IsRegistryHost(host string) bool {
	if !isEndpointHost(host) || strings.HasPrefix(host, "[") {
		return false
	}
	// Windows treats a name as a device if the part before its first dot is a device name.
	folder := registryDirectoryName(host)
	device, _, _ := strings.Cut(folder, ".")
	return !reservedName.MatchString(device) && len(folder) <= maxDirectoryName
}

// maxDirectoryName is the maximum length of a directory name on NTFS. A longer name would block the configuration of
// the node.
const maxDirectoryName = 255

var (
	// hostName matches the host part of image names before the port, in lower case, with the length limits of DNS
	// labels.
	hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
	// repositoryPath matches a part of a repository name. No component is "." or "..".
	repositoryPath = regexp.MustCompile(`^[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
	// reservedName matches device names. Source: "Naming Files, Paths, and Namespaces" of the Win32 documentation.
	reservedName = regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`)
)

// isEndpointHost reports whether a host is valid in a URL without escaping: name, IPv4 address or [IPv6 address],
// with or without a port.
func isEndpointHost(host string) bool {
	name, port, hasPort := strings.Cut(host, ":")
	if rest, ok := strings.CutPrefix(host, "["); ok {
		address, rest, closed := strings.Cut(rest, "]")
		parsed, err := netip.ParseAddr(address)
		if !closed || err != nil || !parsed.Is6() || parsed.Zone() != "" {
			return false
		}
		port, hasPort = strings.CutPrefix(rest, ":")
		return rest == "" || hasPort && isPort(port)
	}
	return len(name) <= 253 && hostName.MatchString(name) && (!hasPort || isPort(port))
}

func isPort(text string) bool {
	number, err := strconv.ParseUint(text, 10, 16)
	return err == nil && number > 0 && strconv.FormatUint(number, 10) == text
}

// isRepositoryPath reports whether a path is a valid prefix of a repository name; empty for none.
func isRepositoryPath(text string) bool {
	return text == "" || len(text) <= 255 && repositoryPath.MatchString(text) && path.Clean(text) == text
}

// registryDirectoryName returns the directory name of containerd's configuration of a host, without the colon, which
// Windows does not allow in file names. Source: containerd, core/remotes/docker/config: hostDirectory, and
// hostPaths in config_windows.go.
func registryDirectoryName(host string) string {
	if name, port, ok := strings.Cut(host, ":"); ok {
		return name + "_" + port + "_"
	}
	return host
}
