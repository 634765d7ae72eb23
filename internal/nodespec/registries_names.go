package nodespec

import (
	"net/netip"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// ExpressMirror expresses a mirror for a source in containerd's terms, both as in an ImageDigestMirrorSet or
// ImageTagMirrorSet: host[:port][/path].
//
// containerd has mirrors for whole hosts. It asks https://<mirrorHost>/v2/<path>/<repository as in the image's name>,
// so a mirror can be expressed when its path ends in the source's path; path is the part before it. containerd then
// asks the mirror for every image of sourceHost. ok is false for a mirror with another path, for a wildcard
// (*.example.com: containerd has no folder for many hosts except the one for all) and for invalid names (see
// IsRegistryHost).
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

// splitName splits host[:port][/path], and reports whether both parts are what they should be.
func splitName(name string) (host, path string, ok bool) {
	host, path, slash := strings.Cut(name, "/")
	return host, path, isEndpointHost(host) && isRepositoryPath(path) && (path != "" || !slash)
}

// MatchesWildcard reports whether a host with any port is below the domain of a wildcard such as *.example.com.
func MatchesWildcard(pattern, host string) bool {
	domain, ok := strings.CutPrefix(pattern, "*.")
	if !ok || domain == "" {
		return false
	}
	name, _, _ := strings.Cut(host, ":")
	return strings.HasSuffix(name, "."+domain)
}

// IsRegistryHost reports whether containerd on Windows can have settings for a host that images are named after: a DNS
// name in lower case or an IPv4 address, with a port or without, whose folder has a name that Windows allows. IPv6
// addresses have none: their folders' names lack the colons, so that different addresses share one.
func IsRegistryHost(host string) bool {
	if !isEndpointHost(host) || strings.HasPrefix(host, "[") {
		return false
	}
	// Windows takes a name for a device whatever follows its first dot.
	folder := registryFolder(host)
	device, _, _ := strings.Cut(folder, ".")
	return !reservedName.MatchString(device) && len(folder) <= longestFolder
}

// longestFolder is the longest name of a folder on NTFS: one that is longer would keep the whole node from being
// configured.
const longestFolder = 255

var (
	// hostName is the part of the grammar of image names that stands before the port, in lower case; each label as DNS
	// limits it.
	hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
	// repositoryPath is a part of the name of a repository. No component is "." or "..".
	repositoryPath = regexp.MustCompile(`^[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
	// reservedName are the names of devices. Source: "Naming Files, Paths, and Namespaces" of the Win32 documentation.
	reservedName = regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`)
)

// isEndpointHost reports whether a host can stand in a URL as it is: name, IPv4 address or [IPv6 address], with a port
// or without.
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

// isRepositoryPath reports whether a path can stand before the name of a repository; empty is none.
func isRepositoryPath(text string) bool {
	return text == "" || len(text) <= 255 && repositoryPath.MatchString(text) && path.Clean(text) == text
}

// registryFolder returns the name of the folder in which containerd looks for the configuration of a host: a colon is
// no part of a file's name on Windows. Source: containerd, core/remotes/docker/config: hostDirectory, and hostPaths in
// config_windows.go.
func registryFolder(host string) string {
	if name, port, ok := strings.Cut(host, ":"); ok {
		return name + "_" + port + "_"
	}
	return host
}
