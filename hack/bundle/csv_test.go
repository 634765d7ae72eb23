package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/yaml"
)

// shippedCSV returns the ClusterServiceVersion in the repository, which OLM and the console read.
func shippedCSV(t *testing.T) *v1alpha1.ClusterServiceVersion {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "deploy", "olm", "bundle", "manifests",
		"windows-machine-config-operator.clusterserviceversion.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	csv := &v1alpha1.ClusterServiceVersion{}
	if err := yaml.UnmarshalStrict(data, csv); err != nil {
		t.Fatal(err)
	}
	return csv
}

// The description for the console and OLM uses the terms of the guides. The description in the repository is tested
// as well as a generated one.
func TestCSV_DescribesRelease(t *testing.T) {
	for where, csv := range map[string]*v1alpha1.ClusterServiceVersion{"fresh": csvOf(t, read(t)),
		"in the repository": shippedCSV(t)} {
		t.Run(where, func(t *testing.T) {
			// R-008, D-5, L-27
			t.Run("the operator serves its own namespace alone", func(t *testing.T) {
				want := []v1alpha1.InstallMode{
					{Type: "OwnNamespace", Supported: true}, {Type: "SingleNamespace"}, {Type: "MultiNamespace"},
					{Type: "AllNamespaces"},
				}
				if diff := cmp.Diff(want, csv.Spec.InstallModes); diff != "" {
					t.Error(diff)
				}
			})
			//
			t.Run("the console suggests the namespace, and to monitor it", func(t *testing.T) {
				for name, want := range map[string]string{
					"operatorframework.io/suggested-namespace": "openshift-windows-machine-config-operator",
					"operatorframework.io/cluster-monitoring":  "true",
				} {
					if got := csv.Annotations[name]; got != want {
						t.Errorf("%s is %q", name, got)
					}
				}
			})
			// R-010, D-6
			t.Run("the columns of oc get csv", func(t *testing.T) {
				version := makefileVersion(t)
				if csv.Name != "windows-machine-config-operator.v"+version || csv.Spec.Version.String() != version {
					t.Errorf("%s is of version %s", csv.Name, csv.Spec.Version)
				}
				if csv.Spec.DisplayName != "Windows Machine Config Operator" {
					t.Errorf("it is called %q", csv.Spec.DisplayName)
				}
			})
			t.Run("it is filtered by what is true of it", func(t *testing.T) {
				got := map[string]string{}
				for name, value := range csv.Annotations {
					if strings.HasPrefix(name, "features.operators.openshift.io/") {
						got[name] = value
					}
				}
				// Not disconnected: the images in the repository are placeholders without a digest. Not
				// fips-compliant: the programs on the nodes are built without Go's FIPS module.
				want := map[string]string{"features.operators.openshift.io/proxy-aware": "true",
					"features.operators.openshift.io/cni": "true"}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			})
			//
			t.Run("OLM goes by the cluster's version and by the release before", func(t *testing.T) {
				if csv.Spec.MinKubeVersion != "1.33.0" || csv.Annotations["olm.skipRange"] != ">=1.0.3 <12.0.0" || csv.Spec.Replaces != "" {
					t.Errorf("it needs Kubernetes %s, and follows %s and %q", csv.Spec.MinKubeVersion, csv.Annotations["olm.skipRange"],
						csv.Spec.Replaces)
				}
			})
			t.Run("all images that a mirror needs are listed", func(t *testing.T) {
				want := []v1alpha1.RelatedImage{{Name: "manager", Image: "windows-machine-config-operator"},
					{Name: "windows-pause", Image: "mcr.microsoft.com/oss/kubernetes/pause:3.9"}}
				if diff := cmp.Diff(want, csv.Spec.RelatedImages); diff != "" {
					t.Error(diff)
				}
			})
			t.Run("it has an icon", func(t *testing.T) {
				want, err := os.ReadFile(filepath.Join(root, "deploy", "olm", "icon.svg"))
				if err != nil || len(csv.Spec.Icon) != 1 || csv.Spec.Icon[0].MediaType != "image/svg+xml" {
					t.Fatalf("icons %v, error %v", csv.Spec.Icon, err)
				}
				if csv.Spec.Icon[0].Data != base64.StdEncoding.EncodeToString(want) {
					t.Error("it is another one")
				}
			})
			//
			t.Run("the console finds it by each word of its name", func(t *testing.T) {
				for _, word := range []string{"windows", "machine", "config", "operator"} {
					if !slices.Contains(csv.Spec.Keywords, word) || !strings.Contains(strings.ToLower(csv.Spec.DisplayName), word) {
						t.Errorf("%q is not among %q, or not in %q", word, csv.Spec.Keywords, csv.Spec.DisplayName)
					}
				}
			})
			//
			t.Run("the console finds it by the name of the tile in earlier guides", func(t *testing.T) {
				if !slices.Contains(csv.Spec.Keywords, "red hat windows machine config operator") {
					t.Errorf("the keywords are %q", csv.Spec.Keywords)
				}
			})
		})
	}
}

//
func TestCSV_ReplacesPreviousRelease(t *testing.T) {
	s := read(t)
	s.releases = releases{[]release{newFinalRelease("12.0.0")}}
	if first := csvOf(t, s); first.Spec.Replaces != "" || first.Name != "windows-machine-config-operator.v12.0.0" {
		t.Errorf("the first one is %s and replaces %q", first.Name, first.Spec.Replaces)
	}
	s.releases = releases{[]release{newFinalRelease("12.0.0"), newFinalRelease("12.0.1")}}
	second := csvOf(t, s)
	if second.Spec.Replaces != "windows-machine-config-operator.v12.0.0" ||
		second.Name != "windows-machine-config-operator.v12.0.1" || second.Spec.Version.String() != "12.0.1" {
		t.Errorf("the second one is %s of version %s and replaces %q", second.Name, second.Spec.Version, second.Spec.Replaces)
	}
}
