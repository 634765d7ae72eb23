// Package validate_test has OLM's own validators look at the bundle. It is a module of its own, because they bring more
// than the operator is to depend on.
package validate_test

import (
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
)

const directory = "../../../deploy/olm/bundle"

// expected are warnings about what is meant to be: WindowsInstances are made by the operator and have no example, and
// the channel preview is one that users have.
var expected = []string{
	"provided API should have an example annotation",
	`channel(s) ["preview"] are not following`,
}

//
func TestTheBundleIsValid(t *testing.T) {
	bundle, err := manifests.GetBundleFromDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	if bundle.CSV == nil || len(bundle.V1CRDs) != 2 || bundle.Package != "windows-machine-config-operator" ||
		bundle.DefaultChannel != "stable" {
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
