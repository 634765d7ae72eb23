package nodeidentity

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// fingerprintForm is the form of a SHA-256 fingerprint as printed by ssh-keygen -l: 32 bytes in base64 without
// padding.
var fingerprintForm = regexp.MustCompile(`^SHA256:[A-Za-z0-9+/]{43}$`)

// maxFingerprints is the maximum number of fingerprints that the annotation may list. A host has one key of each
// type.
const maxFingerprints = 16

// ExpectedHostKeys parses the host key from the annotations of a Machine and its WindowsInstance: fingerprints
// separated by commas. A malformed fingerprint is an error, and no key may be accepted then: the annotation exists to
// exclude foreign hosts.
func ExpectedHostKeys(annotations ...string) ([]string, error) {
	var fingerprints []string
	for _, annotation := range annotations {
		for fingerprint := range strings.SplitSeq(annotation, ",") {
			fingerprint = strings.TrimSuffix(strings.TrimSpace(fingerprint), "=")
			switch {
			case fingerprint == "", slices.Contains(fingerprints, fingerprint):
				continue
			case !fingerprintForm.MatchString(fingerprint):
				return nil, fmt.Errorf("%.60q in the annotation %s is not a fingerprint of an SSH host key, such as SHA256:<43 letters, digits, + or />",
					fingerprint, v1alpha1.AnnotationExpectedHostKey)
			case len(fingerprints) == maxFingerprints:
				return nil, fmt.Errorf("the annotation %s has more than %d fingerprints", v1alpha1.AnnotationExpectedHostKey,
					maxFingerprints)
			}
			fingerprints = append(fingerprints, fingerprint)
		}
	}
	if fingerprints == nil && slices.ContainsFunc(annotations, func(annotation string) bool { return annotation != "" }) {
		return nil, fmt.Errorf("the annotation %s contains no fingerprint", v1alpha1.AnnotationExpectedHostKey)
	}
	return fingerprints, nil
}

// IsHostKeyAccepted reports whether an administrator has accepted exactly this host key instead of the pinned key.
func IsHostKeyAccepted(instance *v1alpha1.WindowsInstance, fingerprint string) bool {
	return fingerprint != "" && instance.Annotations[v1alpha1.AnnotationAcceptHostKey] == fingerprint
}

// reusePrefix is the start of the text about a host key that another host also has.
const reusePrefix = " But it shares its SSH host key with "

// maxNamedInstances is the maximum number of other instances in that text.
const maxNamedInstances = 3

// HostKeyReuse describes the other hosts with the host key of an instance; empty if there are none. Such hosts were
// created from one image that contains keys. A host that is listed twice does not count.
func HostKeyReuse(instance *v1alpha1.WindowsInstance, others []v1alpha1.WindowsInstance) string {
	var names []string
	for i := range others {
		if other := &others[i]; other.Name != instance.Name && hasReusedKey(instance, other) {
			names = append(names, fmt.Sprintf("WindowsInstance %s (%s)", other.Name, other.Spec.Address))
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	more := ""
	if n := len(names) - maxNamedInstances; n > 0 {
		names, more = names[:maxNamedInstances], fmt.Sprintf(" and %d more", n)
	}
	return reusePrefix + strings.Join(names, ", ") + more +
		": control of one of these hosts is enough to impersonate the others. " +
		`Generate new keys on each host: delete C:\ProgramData\ssh\ssh_host_*, run ssh-keygen -A, restart the service sshd, and accept the new key.`
}

// WithReuse returns a message that ends with the current text of HostKeyReuse instead of a previous one.
func WithReuse(message, reuse string) string {
	message, _, _ = strings.Cut(message, reusePrefix)
	return message + reuse
}

// hasReusedKey reports whether two different hosts have the same host key. Machine IDs may be cloned too: two nodes
// without a common address are two hosts.
func hasReusedKey(a, b *v1alpha1.WindowsInstance) bool {
	switch {
	case a.Status.HostKey == nil, b.Status.HostKey == nil, a.Status.HostKey.Key != b.Status.HostKey.Key,
		a.Status.Host == nil, b.Status.Host == nil, a.Status.Host.MachineID == "", b.Status.Host.MachineID == "":
		return false
	case a.Status.Host.MachineID != b.Status.Host.MachineID:
		return true
	}
	nodes := [2]string{ConfirmedName(a), ConfirmedName(b)}
	return nodes[0] != "" && nodes[1] != "" && nodes[0] != nodes[1] && !HasSharedAddress(a, b)
}
