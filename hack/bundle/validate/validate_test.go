// Package validate_test validates bundle and catalog with OLM's own libraries, in a separate module, because these
// libraries have more dependencies than the operator should have.
package validate_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
)

const root = "../../.."

// expected lists accepted warnings: WindowsInstances have no example, because the operator creates them.
var expected = []string{"provided API should have an example annotation"}

// flavors maps the values of FLAVOR to package names.
var flavors = map[string]string{
	"redhat":    "windows-machine-config-operator",
	"community": "community-windows-machine-config-operator",
}

// writeOLM runs hack/bundle on a copy of its sources with another list of releases, and returns the output directory.
func writeOLM(t *testing.T, flavor, releases string, versions ...string) string {
	t.Helper()
	directory := t.TempDir()
	for _, source := range []string{"deploy", "examples"} {
		if err := os.CopyFS(filepath.Join(directory, source), os.DirFS(filepath.Join(root, source))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(directory, "deploy", "olm", "releases.yaml"), []byte(releases), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(directory, "out")
	command := exec.CommandContext(t.Context(), "go", "run", "./hack/bundle", "-root", directory, "-out", out, "-flavor", flavor,
		"-version", versions[len(versions)-1])
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return out
}

// listReleases returns the content of releases.yaml.
func listReleases(versions ...string) string {
	return "releases:\n- version: " + strings.Join(versions, "\n- version: ") + "\n"
}

func TestBundle_PassesValidation(t *testing.T) {
	//
	t.Run("in the repository", func(t *testing.T) {
		validateBundle(t, filepath.Join(root, "deploy", "olm", "bundle"), flavors["redhat"])
	})
	//
	t.Run("of the community", func(t *testing.T) {
		validateBundle(t, filepath.Join(writeOLM(t, "community", listReleases("12.0.0"), "12.0.0"), "bundle"), flavors["community"])
	})
}

// validateBundle runs OLM's validators on the bundle of a package.
func validateBundle(t *testing.T, directory, name string) {
	t.Helper()
	bundle, err := manifests.GetBundleFromDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	if bundle.CSV == nil || len(bundle.V1CRDs) != 2 || bundle.Package != name || bundle.DefaultChannel != "stable" {
		t.Fatalf("package %q, channel %q, %d definitions", bundle.Package, bundle.DefaultChannel, len(bundle.V1CRDs))
	}
	validators := validation.DefaultBundleValidators.WithValidators(
		validation.ObjectValidator, validation.GoodPracticesValidator, validation.StandardCapabilitiesValidator,
		validation.StandardCategoriesValidator,
	)
	results := validators.Validate(bundle.ObjectsToValidate()...)
	if len(results) == 0 {
		t.Fatal("nothing was validated")
	}
	for _, result := range results {
		for _, found := range result.Errors {
			t.Errorf("%s: %v", result.Name, found)
		}
		for _, found := range result.Warnings {
			if !isExpected(found.Error()) {
				t.Errorf("%s: %v", result.Name, found)
			}
		}
	}
}

func isExpected(warning string) bool {
	for _, part := range expected {
		if strings.Contains(warning, part) {
			return true
		}
	}
	return false
}
