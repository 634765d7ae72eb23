package operator

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// countingMapper counts the queries, and knows a kind once the kind is served.
type countingMapper struct {
	meta.RESTMapper
	queries int
	served  bool
}

func (m *countingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.queries++
	if !m.served {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	version := "preferred"
	if len(versions) > 0 {
		version = versions[len(versions)-1]
	}
	return &meta.RESTMapping{GroupVersionKind: kind.WithVersion(version), Scope: meta.RESTScopeRoot}, nil
}

func TestCachingMapper_QueriesEachKindOnce(t *testing.T) {
	behind := &countingMapper{}
	m := &cachingMapper{RESTMapper: behind}
	node, machine := schema.GroupKind{Kind: "Node"}, schema.GroupKind{Group: "machine.openshift.io", Kind: "Machine"}
	for range 2 {
		if _, err := m.RESTMapping(machine, "v1beta1"); !meta.IsNoMatchError(err) {
			t.Fatalf("a kind that the API server does not have: %v", err)
		}
	}
	if behind.queries != 2 {
		t.Errorf("a kind that may come later was asked for %d times, want each time", behind.queries)
	}
	behind.queries, behind.served = 0, true
	for range 3 {
		for _, c := range []struct {
			kind     schema.GroupKind
			versions []string
			want     string
		}{{node, []string{"v1"}, "v1"}, {node, nil, "preferred"}, {machine, []string{"v1beta1"}, "v1beta1"}} {
			mapping, err := m.RESTMapping(c.kind, c.versions...)
			if err != nil || mapping.GroupVersionKind != c.kind.WithVersion(c.want) {
				t.Errorf("%s %v: %+v, error %v", c.kind, c.versions, mapping, err)
			}
		}
	}
	if behind.queries != 3 {
		t.Errorf("three kinds were asked for %d times", behind.queries)
	}
	if _, err := m.RESTMapping(node, "v1", "v2"); err != nil || behind.queries != 4 {
		t.Errorf("several versions at once are not for the mapper behind: %v, asked %d times", err, behind.queries)
	}
}
