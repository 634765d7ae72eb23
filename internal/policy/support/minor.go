package support

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/windows-machine-config/wmco/internal/policy"
)

// maxMinorsAhead is the maximum number of minor versions that a cluster may be newer than the newest served version.
// Kubernetes supports a kubelet that is at most three minor versions older than the API server, and within a major
// version of OpenShift each minor version has the next minor version of Kubernetes.
const maxMinorsAhead = 3

// Oldest returns the oldest served minor version.
func (line ReleaseLine) Oldest() Minor { return line.Minors[0] }

// Newest returns the newest served minor version, which may be a preview.
func (line ReleaseLine) Newest() Minor { return line.Minors[len(line.Minors)-1] }

// MinorFor returns the served minor version for a version of OpenShift. For a cluster that is newer than the newest
// served minor version by up to three minor versions, that is the newest one. It returns false for all other
// versions.
func (line ReleaseLine) MinorFor(cluster string) (Minor, bool) {
	parsed, err := version.ParseSemantic(cluster)
	if err != nil {
		return Minor{}, false
	}
	for _, minor := range line.Minors {
		if served := version.MustParseGeneric(minor.OpenShift); isSameMinor(parsed, served) {
			return minor, true
		}
	}
	return line.Newest(), line.minorsAhead(parsed) > 0
}

// KubernetesFor returns the minor version of Kubernetes for the nodes of a cluster: "1.36"; empty if the cluster is
// not served.
func (line ReleaseLine) KubernetesFor(cluster string) string {
	if minor, served := line.MinorFor(cluster); served {
		return minor.Kubernetes
	}
	return ""
}

// KubernetesMinors returns the minor versions of Kubernetes of the line, the oldest first.
func (line ReleaseLine) KubernetesMinors() []string {
	var minors []string
	for _, minor := range line.Minors {
		minors = append(minors, minor.Kubernetes)
	}
	return slices.Compact(minors)
}

// UntestedAdvice returns advice for the administrator of a cluster that is newer than the newest served minor version,
// and empty for all other clusters.
func (line ReleaseLine) UntestedAdvice(cluster string) string {
	parsed, err := version.ParseSemantic(cluster)
	if err != nil || line.minorsAhead(parsed) == 0 {
		return ""
	}
	return fmt.Sprintf("The cluster is OpenShift %s, and this operator, of release line %d, was tested with versions up to %s. "+
		"Windows nodes have Kubernetes %s. Upgrade the operator.", cluster, line.Operator, line.Newest().OpenShift, line.Newest().Kubernetes)
}

// minorsAhead returns the number of minor versions that a cluster is newer than the newest served version, from 1 to
// maxMinorsAhead; 0 for all other clusters.
func (line ReleaseLine) minorsAhead(cluster *version.Version) uint {
	newest := version.MustParseGeneric(line.Newest().OpenShift)
	if cluster.Major() != newest.Major() || cluster.Minor() <= newest.Minor() || cluster.Minor()-newest.Minor() > maxMinorsAhead {
		return 0
	}
	return cluster.Minor() - newest.Minor()
}

func isSameMinor(a, b *version.Version) bool { return a.Major() == b.Major() && a.Minor() == b.Minor() }

// formatServed returns the served minor versions as a text: "OpenShift 4.20, 4.21 and 5.0".
func (line ReleaseLine) formatServed() string {
	var names []string
	for _, minor := range line.Minors {
		names = append(names, minor.OpenShift)
	}
	return "OpenShift " + policy.Enumerate(names)
}
