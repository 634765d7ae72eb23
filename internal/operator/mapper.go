package operator

import (
	"net/http"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// machineKind and machineResource are Machines of the Machine API, which a cluster need not have.
var (
	machineKind     = machinev1beta1.GroupVersion.WithKind("Machine")
	machineResource = machinev1beta1.GroupVersion.WithResource("machines")
)

// mapper is the manager's knowledge of the API server. It knows Machines also where the API server does not: else a manager whose cache
// is told which Machines to keep does not start on such a cluster.
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
	if kind == machineKind.GroupKind() && meta.IsNoMatchError(err) {
		return &meta.RESTMapping{Resource: machineResource, GroupVersionKind: machineKind, Scope: meta.RESTScopeNamespace}, nil
	}
	return mapping, err
}

// RESTMappings implements meta.RESTMapper.
func (m mapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	if kind != machineKind.GroupKind() {
		return m.RESTMapper.RESTMappings(kind, versions...)
	}
	mapping, err := m.RESTMapping(kind, versions...)
	return []*meta.RESTMapping{mapping}, err
}
