package main

import (
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const subscription = "operators.openshift.io/valid-subscription"

//
func TestFlavor_CommunityHasOwnPackage(t *testing.T) {
	s := read(t)
	redHat := csvOf(t, s)
	var err error
	if s.flavor, err = parseFlavor("community"); err != nil {
		t.Fatal(err)
	}
	community := csvOf(t, s)
	version := makefileVersion(t)
	t.Run("under a name of its own, also for users", func(t *testing.T) {
		if community.Name != "community-windows-machine-config-operator.v"+version ||
			community.Spec.DisplayName != "Community Windows Machine Config Operator" {
			t.Errorf("it is %s, %q", community.Name, community.Spec.DisplayName)
		}
		if !strings.HasPrefix(community.Spec.Description, "This is the community distribution") {
			t.Errorf("it is described as %s", community.Spec.Description)
		}
		if words := strings.Join(community.Spec.Keywords, " "); strings.Contains(words, "red hat") {
			t.Errorf("its keywords are %s", words)
		}
	})
	t.Run("a cluster needs a subscription for Red Hat's alone", func(t *testing.T) {
		if got, has := community.Annotations[subscription]; has {
			t.Errorf("the community's needs %s", got)
		}
		if got := redHat.Annotations[subscription]; got != `["Red Hat OpenShift support for Windows Containers"]` {
			t.Errorf("Red Hat's needs %s", got)
		}
	})
	t.Run("the catalog and the bundle have that name too", func(t *testing.T) {
		objects := catalogObjects(t, s)
		text, err := json.Marshal(objects)
		if err != nil {
			t.Fatal(err)
		}
		if objects["olm.package"][0]["name"] != "community-windows-machine-config-operator" ||
			strings.Contains(string(text), `"package":"windows-machine-config-operator"`) ||
			strings.Contains(string(text), `"name":"windows-machine-config-operator.v`) {
			t.Errorf("got %s", text)
		}
		if got := bundleAnnotations(s)["operators.operatorframework.io.bundle.package.v1"]; got != "community-windows-machine-config-operator" {
			t.Errorf("the bundle is of package %s", got)
		}
	})
	t.Run("and the same operator, with the same rights", func(t *testing.T) {
		a, errA := json.Marshal(redHat.Spec.InstallStrategy)
		b, errB := json.Marshal(community.Spec.InstallStrategy)
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Errorf("errors %v, %v, or it installs something else", errA, errB)
		}
	})
	t.Run("its files can be written", func(t *testing.T) {
		out := t.TempDir()
		if err := run(options{root: root, out: out, version: version, flavor: "community"}, io.Discard); err != nil {
			t.Fatal(err)
		}
		if _, has := readFiles(t, filepath.Join(out, "bundle"))["manifests/community-windows-machine-config-operator.clusterserviceversion.yaml"]; !has {
			t.Errorf("there are %v", sortedKeys(readFiles(t, out)))
		}
	})
	t.Run("another flavor is refused", func(t *testing.T) {
		err := run(options{root: root, out: t.TempDir(), version: version, flavor: "vanilla"}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "the flavors are community, redhat") {
			t.Errorf("got %v", err)
		}
	})
}

func TestRun_UnpublishableOutputReported(t *testing.T) {
	const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	const operator, bundle = "registry.example.com/wmco" + digest, "registry.example.com/bundle" + digest
	for name, test := range map[string]struct {
		image, bundle  string
		catalog, inner bool
	}{
		"both images":            {operator, bundle, false, false},
		"no image of the bundle": {operator, "", true, false},
		"none of the operator":   {"", bundle, false, true},
		"as in a repository":     {"", "", false, false},
	} {
		var output strings.Builder
		if err := run(options{root: root, out: t.TempDir(), version: makefileVersion(t), flavor: "redhat",
			image: test.image, bundleImage: test.bundle}, &output); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(output.String(), "set BUNDLE_IMAGE") != test.catalog || strings.Contains(output.String(), "set IMAGE") != test.inner {
			t.Errorf("%s: it says %q", name, &output)
		}
	}
}

// L-03
func TestCSV_DisconnectedOnlyIfAllImagesHaveDigest(t *testing.T) {
	const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	const disconnected = "features.operators.openshift.io/disconnected"
	for name, test := range map[string]struct {
		image, pause string
		want         string
	}{
		"all of them":              {"registry.example.com/wmco" + digest, "registry.example.com/pause" + digest, "true"},
		"all but the pause image":  {"registry.example.com/wmco" + digest, "", ""},
		"all but the operator's":   {"", "registry.example.com/pause" + digest, ""},
		"none, as in a repository": {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir()
			if err := run(options{root: root, out: out, version: makefileVersion(t), flavor: "redhat", image: test.image,
				pauseImage: test.pause}, io.Discard); err != nil {
				t.Fatal(err)
			}
			text := readFiles(t, out)["bundle/manifests/windows-machine-config-operator.clusterserviceversion.yaml"]
			if got := strings.Contains(text, disconnected+`: "true"`); got != (test.want == "true") {
				t.Errorf("it is said to be: %v", got)
			}
			for _, image := range []string{test.image, test.pause} {
				if image != "" && strings.Count(text, image) < 2 {
					t.Errorf("%s is not both where it is run and among the related images", image)
				}
			}
		})
	}
	for variable, o := range map[string]options{"IMAGE": {image: "registry.example.com/wmco:v1"},
		"PAUSE_IMAGE": {pauseImage: "registry.example.com/pause:3.9"}} {
		t.Run(variable+" without a digest is refused", func(t *testing.T) {
			o.root, o.out, o.version, o.flavor = root, t.TempDir(), makefileVersion(t), "redhat"
			if err := run(o, io.Discard); err == nil || !strings.Contains(err.Error(), variable+"=registry") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A descriptor with a wrong path shows nothing in the console, without an error.
func TestCSV_DescriptorsNameExistingFields(t *testing.T) {
	s := read(t)
	for _, owned := range csvOf(t, s).Spec.CustomResourceDefinitions.Owned {
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(s.definitions[owned.Name], &definition); err != nil {
			t.Fatal(err)
		}
		schema := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
		var shown, described []string
		for _, d := range owned.SpecDescriptors {
			shown = append(shown, "spec."+d.Path)
			described = append(described, d.DisplayName, d.Description)
		}
		for _, d := range owned.StatusDescriptors {
			shown = append(shown, "status."+d.Path)
			described = append(described, d.DisplayName, d.Description)
		}
		t.Run(owned.Kind, func(t *testing.T) {
			if len(owned.SpecDescriptors) == 0 || len(owned.StatusDescriptors) == 0 || owned.Description == "" {
				t.Errorf("it shows only %v", shown)
			}
			if slices.Contains(described, "") {
				t.Errorf("one has no words: %q", described)
			}
			for _, path := range shown {
				if !hasField(*schema, strings.Split(path, ".")) {
					t.Errorf("the definition has no field %s", path)
				}
			}
		})
	}
}

func hasField(schema apiextensionsv1.JSONSchemaProps, path []string) bool {
	if len(path) == 0 {
		return true
	}
	inner, ok := schema.Properties[path[0]]
	return ok && hasField(inner, path[1:])
}
