package cluster

import (
	"regexp"
	"strings"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// scope is a set of images in the notation of OpenShift's image settings: host[:port][/path], or *.domain for
// all hosts below a domain.
type scope struct {
	host, path string
	wildcard   bool
}

// The formats of registries.conf on Linux nodes, and of the API's own validation: see the fields of
// ImageDigestMirrorSet.
var (
	wildcardForm = regexp.MustCompile(`^\*(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+$`)
	hostForm     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*(:[0-9]{1,5})?$`)
	pathForm     = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
)

// maxScopeLength is the maximum length of an image name; the API also accepts 256 characters.
const maxScopeLength = 256

// parseScope parses a scope. Host names are converted to lower case, as in image names.
func parseScope(text string) (scope, bool) {
	if text == "" || len(text) > maxScopeLength {
		return scope{}, false
	}
	if lower := strings.ToLower(text); wildcardForm.MatchString(lower) {
		return scope{host: lower, wildcard: true}, true
	}
	host, path, hasPath := strings.Cut(text, "/")
	host = strings.ToLower(host)
	if !hostForm.MatchString(host) || hasPath && !pathForm.MatchString(path) {
		return scope{}, false
	}
	if _, port, found := strings.Cut(host, ":"); found && !isPort(port) {
		return scope{}, false
	}
	return scope{host: host, path: path}, true
}

// String returns the scope in its notation.
func (s scope) String() string {
	if s.path == "" {
		return s.host
	}
	return s.host + "/" + s.path
}

// containsScope reports whether all images of another scope are in this scope.
func (s scope) containsScope(other scope) bool {
	if s.wildcard {
		if other.wildcard {
			return other.host == s.host || strings.HasSuffix(other.host, s.host[1:])
		}
		return nodespec.IsWildcardMatch(s.host, other.host)
	}
	return s.host == other.host && !other.wildcard && (s.path == "" || s.path == other.path || strings.HasPrefix(other.path, s.path+"/"))
}

// isCompleteHost reports whether the scope is a complete host.
func (s scope) isCompleteHost() bool { return !s.wildcard && s.path == "" }

// pathDepth returns the number of path elements.
func (s scope) pathDepth() int {
	if s.path == "" {
		return 0
	}
	return strings.Count(s.path, "/") + 1
}
