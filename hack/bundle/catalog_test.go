package main

import (
	"bytes"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// catalogObjects returns the objects of a catalog, by schema.
func catalogObjects(t *testing.T, s *sources) map[string][]map[string]any {
	t.Helper()
	data, err := newCatalog(s, csvOf(t, s), "")
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string][]map[string]any{}
	for _, document := range bytes.Split(data, []byte("\n---\n")) {
		var object map[string]any
		if err := yaml.UnmarshalStrict(document, &object); err != nil {
			t.Fatal(err)
		}
		schema, _ := object["schema"].(string)
		objects[schema] = append(objects[schema], object)
	}
	return objects
}

// L-27
func TestCatalog_HasPackageOfGuide(t *testing.T) {
	s := read(t)
	objects := catalogObjects(t, s)
	packages, channels, bundles := objects["olm.package"], objects["olm.channel"], objects["olm.bundle"]
	if len(packages) != 1 || packages[0]["name"] != "windows-machine-config-operator" ||
		packages[0]["defaultChannel"] != "stable" {
		t.Errorf("packages %v", packages)
	}
	if len(channels) != 1 || channels[0]["name"] != "stable" {
		t.Errorf("channels %v", channels)
	}
	if len(bundles) != 1 || bundles[0]["name"] != "windows-machine-config-operator.v"+makefileVersion(t) {
		t.Errorf("bundles %v", bundles)
	}
	for name, value := range bundleAnnotations(s) {
		if strings.Contains(name, ".channel") && value != "stable" {
			t.Errorf("the bundle's %s is %s", name, value)
		}
	}
}

func TestCatalog_InvalidBundleImageRejected(t *testing.T) {
	s := read(t)
	_, err := generateFiles(s, options{version: makefileVersion(t), bundleImage: "Registry/with a space"})
	if err == nil || !strings.Contains(err.Error(), "BUNDLE_IMAGE=Registry/with a space is not the name of an image") {
		t.Errorf("got %v", err)
	}
}
