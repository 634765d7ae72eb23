package cluster

import (
	"cmp"
	"context"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// readVersion reads the OpenShift version of the nodes: the oldest version that an API server may still have, because a
// kubelet must not be newer than an API server.
func readVersion(ctx context.Context, reader client.Reader, facts *nodespec.Cluster) error {
	const id = "ClusterVersion version"
	object := &configv1.ClusterVersion{}
	if err := get(ctx, reader, "version", object, id,
		"The installer creates it; a cluster without it is not an OpenShift cluster."); err != nil {
		return err
	}
	if facts.Version = oldestVersion(object.Status); facts.Version == "" {
		return &Error{Object: id, Field: "status.desired.version",
			Message: "it is empty. The cluster version operator sets it once it runs."}
	}
	return nil
}

// oldestVersion returns the last completed version or, during an upgrade or a downgrade, the oldest version since. Without
// a history it is the target version.
func oldestVersion(status configv1.ClusterVersionStatus) string {
	var oldest *version.Version
	result := ""
	for _, update := range status.History { // newest first
		parsed, err := version.ParseSemantic(update.Version)
		completed := update.State == configv1.CompletedUpdate
		switch {
		case completed && err != nil:
			return update.Version // no such cluster is served
		case err == nil && (oldest == nil || parsed.LessThan(oldest)):
			oldest, result = parsed, update.Version
		}
		if completed {
			return result
		}
	}
	return cmp.Or(result, status.Desired.Version)
}
