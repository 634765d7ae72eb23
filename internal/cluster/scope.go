package cluster

import (
	"regexp"
	"strings"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// scope is a set of images as OpenShift's image settings name it: host[:port][/path], or *.domain for all hosts below a
// domain.
type scope struct {
	host, path string
	wildcard   bool
}

// The forms that registries.conf of the Linux nodes has, and the API's own validation: see the fields of
// ImageDigestMirrorSet.
var (
	wildcardForm = regexp.MustCompile(`^\*(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+$`)
	hostForm     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*(:[0-9]{1,5})?$`)
	pathForm     = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
)

// longestScope is the longest name of an image; the API takes 256 characters too.
const longestScope = 256

// parseScope reads a scope. Names of hosts are put into lower case, as they are in the names of images.
func parseScope(text string) (scope, bool) {
	if text == "" || len(text) > longestScope {
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

// String returns the scope as it is written.
func (s scope) String() string {
	if s.path == "" {
		return s.host
	}
	return s.host + "/" + s.path
}

// contains reports whether all images of another scope are in this one.
func (s scope) contains(other scope) bool {
	if s.wildcard {
		if other.wildcard {
			return other.host == s.host || strings.HasSuffix(other.host, s.host[1:])
		}
		return nodespec.MatchesWildcard(s.host, other.host)
	}
	return s.host == other.host && !other.wildcard && (s.path == "" || s.path == other.path || strings.HasPrefix(other.path, s.path+"/"))
}

// wholeHost is true for a host and nothing below it.
func (s scope) wholeHost() bool { return !s.wildcard && s.path == "" }

// depth is how many parts the path has.
func (s scope) depth() int {
	if s.path == "" {
		return 0
	}
	return strings.Count(s.path, "/") + 1
}
