package validate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/model"
	"sigs.k8s.io/yaml"
)

// readCatalog reads a catalog with the code of `opm validate` and of the catalog's pod.
func readCatalog(t *testing.T, text string) (model.Model, error) {
	t.Helper()
	config, err := declcfg.LoadFS(t.Context(), fstest.MapFS{"catalog.yaml": {Data: []byte(text)}})
	if err != nil {
		return nil, err
	}
	return declcfg.ConvertToModel(*config)
}

//
func TestCatalog_PassesValidation(t *testing.T) {
	for _, test := range []struct {
		name, releases string
		versions       []string
		replaces       string
	}{
		{"with the first release", listReleases("12.0.0"), []string{"12.0.0"}, ""},
		{"with a second one", listReleases("12.0.0", "12.0.1"), []string{"12.0.0", "12.0.1"}, ".v12.0.0"},
		{"with a third one", listReleases("12.0.0", "12.0.1", "12.1.0"), []string{"12.0.0", "12.0.1", "12.1.0"}, ".v12.0.1"},
		{"after a release was withdrawn", listReleases("12.0.0", "12.0.2") + "  skips: [12.0.1]\n", []string{"12.0.2"}, ".v12.0.0"},
	} {
		for flavor, name := range flavors {
			t.Run(test.name+", "+flavor, func(t *testing.T) {
				text, err := os.ReadFile(filepath.Join(writeOLM(t, flavor, test.releases, test.versions...), "catalog", "catalog.yaml"))
				if err != nil {
					t.Fatal(err)
				}
				read, err := readCatalog(t, string(text))
				if err != nil {
					t.Fatal(err)
				}
				found := read[name]
				if len(read) != 1 || found == nil || len(found.Channels) != 1 || found.DefaultChannel.Name != "stable" {
					t.Fatalf("got %v", read)
				}
				head, err := found.DefaultChannel.Head()
				if err != nil {
					t.Fatal(err)
				}
				replaces := ""
				if test.replaces != "" {
					replaces = name + test.replaces
				}
				version := test.versions[len(test.versions)-1]
				if head.Name != name+".v"+version || head.Version.String() != version || head.Replaces != replaces {
					t.Errorf("the head is %s of version %s and replaces %q", head.Name, head.Version, head.Replaces)
				}
			})
		}
	}
	t.Run("in the repository", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(root, "deploy", "olm", "catalog", "catalog.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readCatalog(t, string(text)); err != nil {
			t.Error(err)
		}
	})
}

// lab/fakeolm refuses the same catalogs: its test reads the same file.
func TestCatalog_RejectedByLabIsRejectedByOLM(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "lab", "fakeolm", "testdata", "catalogs.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Valid   string
		Refused []struct{ Name, Replace, With string }
	}
	if err := yaml.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	if _, err := readCatalog(t, table.Valid); err != nil {
		t.Fatal(err)
	}
	for _, test := range table.Refused {
		t.Run(test.Name, func(t *testing.T) {
			if strings.Count(table.Valid, test.Replace) != 1 {
				t.Fatalf("%q is not in the valid catalog exactly once", test.Replace)
			}
			if _, err := readCatalog(t, strings.Replace(table.Valid, test.Replace, test.With, 1)); err == nil {
				t.Error("it is accepted")
			}
		})
	}
}
