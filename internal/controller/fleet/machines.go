package fleet

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// ListMachines lists the Machines or the MachineSets of the cluster. A cluster without the Machine API has
// neither. Discovery must confirm the absence: an API server also briefly responds with 404 while it sets up
// its custom resources. An instance that belongs to a Machine contradicts discovery.
func ListMachines(ctx context.Context, live client.Reader, into client.ObjectList, instances []v1alpha1.WindowsInstance) error {
	err := live.List(ctx, into, client.InNamespace(v1alpha1.MachineNamespace))
	if !meta.IsNoMatchError(err) {
		return err
	}
	for i := range instances {
		if spec := &instances[i].Spec; spec.Source.Machine != nil && spec.DesiredState != v1alpha1.DesiredStateRemoved {
			return fmt.Errorf("WindowsInstance %s belongs to Machine %s, but the API server has no Machine API: %w",
				instances[i].Name, spec.Source.Machine.Name, err)
		}
	}
	return nil
}
