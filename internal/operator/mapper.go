package operator

import (
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// cachingMapper queries the wrapped mapper once for each kind. For each object read, the cache determines
// whether its kind is namespaced, and for this the wrapped mapper iterates over all groups of the API server. A
// kind that was not found is queried again.
type cachingMapper struct {
	meta.RESTMapper
	mappings sync.Map // mappingKey to *meta.RESTMapping
}

// mappingKey is the key of a mapping.
type mappingKey struct {
	kind    schema.GroupKind
	version string // empty for the preferred version
}

// newMapper implements manager.Options.MapperProvider.
func newMapper(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
	dynamic, err := apiutil.NewDynamicRESTMapper(config, client)
	if err != nil {
		return nil, err
	}
	return &cachingMapper{RESTMapper: dynamic}, nil
}

// RESTMapping implements meta.RESTMapper.
func (m *cachingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	asked := mappingKey{kind: kind}
	switch len(versions) {
	case 0:
	case 1:
		asked.version = versions[0]
	default:
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	known, _ := m.mappings.Load(asked)
	if mapping, ok := known.(*meta.RESTMapping); ok {
		return mapping, nil
	}
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err == nil {
		m.mappings.Store(asked, mapping)
	}
	return mapping, err
}
