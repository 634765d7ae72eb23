package status

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/index"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// describeHostKeyReuse describes other hosts with the host's key; empty for none. The description is advisory, so a
// failed lookup is not an error.
func (w Writer) describeHostKeyReuse(ctx context.Context, instance *v1alpha1.WindowsInstance) string {
	if instance.Status.HostKey == nil {
		return ""
	}
	found, err := index.Instances{Cache: w.Client, Namespace: w.Namespace}.WithHostKey(ctx, instance.Status.HostKey.Key)
	if err != nil {
		log.FromContext(ctx).Info("the operator cannot determine whether other hosts have the same host key", "reason", err.Error())
		return ""
	}
	return nodeidentity.HostKeyReuse(instance, found)
}
