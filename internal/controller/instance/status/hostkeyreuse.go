package status

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/hostkey"
)

// hostKeyReuse says which other hosts have the host's key; empty when none has. It is advice: what cannot be found out
// now is reported later.
func (w Writer) hostKeyReuse(ctx context.Context, instance *v1alpha1.WindowsInstance) string {
	if instance.Status.HostKey == nil {
		return ""
	}
	var instances v1alpha1.WindowsInstanceList
	// Nothing is written to what is shared with the cache.
	if err := w.Client.List(ctx, &instances, client.InNamespace(w.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Info("the operator cannot determine whether other hosts have the same host key", "reason", err.Error())
		return ""
	}
	return hostkey.Reuse(instance, instances.Items)
}
