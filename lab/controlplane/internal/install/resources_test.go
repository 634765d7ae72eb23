package install

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/windows-machine-config/wmco/lab/controlplane/openshift"
)

func TestResources(t *testing.T) {
	crds, err := openshift.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	known, err := newResources(crds)
	if err != nil {
		t.Fatal(err)
	}

	t.Run("every object of the profile has a resource", func(t *testing.T) {
		for _, platform := range openshift.Platforms {
			objects, err := openshift.Objects(openshift.Cluster{Domain: "lab.example.com", Platform: platform})
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range objects {
				if _, err := known.of(object); err != nil {
					t.Error(err)
				}
			}
		}
	})

	t.Run("an unknown kind is an error that names it", func(t *testing.T) {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"}}
		if _, err := known.of(object); err == nil || !strings.Contains(err.Error(), "Widget") {
			t.Errorf("got %v", err)
		}
	})
}
