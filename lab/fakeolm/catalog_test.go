package fakeolm_test

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/lab/fakeolm"
)

// hack/bundle/validate verifies that operator-registry refuses the same catalogs.
func TestCatalog_InvalidCatalogsRejected(t *testing.T) {
	data, err := os.ReadFile("testdata/catalogs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Valid   string
		Refused []struct{ Name, Replace, With, Says string }
	}
	if err := yaml.UnmarshalStrict(data, &table); err != nil {
		t.Fatal(err)
	}
	t.Run("a valid one is not", func(t *testing.T) {
		catalog, err := fakeolm.ParseCatalog([]byte(table.Valid))
		if err != nil {
			t.Fatal(err)
		}
		if entries := catalog.Channel("op", ""); len(entries) != 3 || entries[2].Replaces != "op.v1.1.0" {
			t.Errorf("the default channel has %v", entries)
		}
	})
	for _, test := range table.Refused {
		t.Run(test.Name, func(t *testing.T) {
			if strings.Count(table.Valid, test.Replace) != 1 {
				t.Fatalf("%q is not in the valid catalog exactly once", test.Replace)
			}
			_, err := fakeolm.ParseCatalog([]byte(strings.Replace(table.Valid, test.Replace, test.With, 1)))
			if err == nil || !strings.Contains(err.Error(), test.Says) {
				t.Errorf("got %v", err)
			}
		})
	}
}
