package cluster

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// readVersion reads the last completed OpenShift version, because some nodes still have that version during an
// upgrade.
func readVersion(ctx context.Context, reader client.Reader, facts *nodespec.Cluster) error {
	const id = "ClusterVersion version"
	version := &configv1.ClusterVersion{}
	if err := get(ctx, reader, "version", version, id,
		"The installer creates it; a cluster without it is not an OpenShift cluster."); err != nil {
		return err
	}
	facts.Version = version.Status.Desired.Version
	for _, update := range version.Status.History { // newest first
		if update.State == configv1.CompletedUpdate {
			facts.Version = update.Version
			break
		}
	}
	if facts.Version == "" {
		return &Error{Object: id, Field: "status.desired.version",
			Message: "it is empty. The cluster version operator sets it once it runs."}
	}
	return nil
}
