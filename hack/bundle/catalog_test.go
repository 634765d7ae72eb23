package main

import (
	"bytes"
	"testing"

	"sigs.k8s.io/yaml"
)

// catalogObjects returns the objects of a catalog, by schema.
func catalogObjects(t *testing.T, s *sources) map[string][]map[string]any {
	t.Helper()
	data, err := makeCatalog(s, csvOf(t, s), "")
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string][]map[string]any{}
	for _, document := range bytes.Split(data, []byte("\n---\n"))[1:] {
		var object map[string]any
		if err := yaml.UnmarshalStrict(document, &object); err != nil {
			t.Fatal(err)
		}
		schema, _ := object["schema"].(string)
		objects[schema] = append(objects[schema], object)
	}
	return objects
}

//
func TestTheCatalogHasThePackageThatTheGuideSubscribesTo(t *testing.T) {
	objects := catalogObjects(t, read(t))
	packages, channels, bundles := objects["olm.package"], objects["olm.channel"], objects["olm.bundle"]
	if len(packages) != 1 || packages[0]["name"] != "windows-machine-config-operator" ||
		packages[0]["defaultChannel"] != "stable" {
		t.Errorf("packages %v", packages)
	}
	if len(channels) != 2 || channels[0]["name"] != "preview" || channels[1]["name"] != "stable" {
		t.Errorf("channels %v", channels)
	}
	if len(bundles) != 1 || bundles[0]["name"] != "windows-machine-config-operator.v"+makefileVersion(t) {
		t.Errorf("bundles %v", bundles)
	}
}
