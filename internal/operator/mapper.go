package operator

import (
	"net/http"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// machineResource are Machines of the Machine API, which a cluster need not have.
var machineResource = machinev1beta1.GroupVersion.WithResource("machines")

// machineAPI are the kinds of the Machine API that the operator keeps in memory.
var machineAPI = map[schema.GroupKind]*meta.RESTMapping{
	machinev1beta1.GroupVersion.WithKind("Machine").GroupKind(): {
		Resource: machineResource, GroupVersionKind: machinev1beta1.GroupVersion.WithKind("Machine"), Scope: meta.RESTScopeNamespace,
	},
	machinev1beta1.GroupVersion.WithKind("MachineSet").GroupKind(): {
		Resource:         machinev1beta1.GroupVersion.WithResource("machinesets"),
		GroupVersionKind: machinev1beta1.GroupVersion.WithKind("MachineSet"), Scope: meta.RESTScopeNamespace,
	},
}

// mapper is the manager's knowledge of the API server. It knows Machines and MachineSets also where the API server does not: else a manager
// whose cache is told which of them to keep does not start on such a cluster.
type mapper struct {
	meta.RESTMapper
}

func newMapper(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	dynamic, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, err
	}
	return mapper{RESTMapper: dynamic}, nil
}

// RESTMapping implements meta.RESTMapper.
func (m mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if known := machineAPI[kind]; known != nil && meta.IsNoMatchError(err) {
		copied := *known
		return &copied, nil
	}
	return mapping, err
}

// RESTMappings implements meta.RESTMapper.
func (m mapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	if machineAPI[kind] == nil {
		return m.RESTMapper.RESTMappings(kind, versions...)
	}
	mapping, err := m.RESTMapping(kind, versions...)
	return []*meta.RESTMapping{mapping}, err
}
