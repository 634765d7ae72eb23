package kubelet_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	csitranslation "k8s.io/csi-translation-lib"
)

// the guide documents which driver the kubelet uses to mount volumes with the name of an in-tree cloud
// driver.
func TestInTreeVolumes_GuideNamesCSIDrivers(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "settings.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `(kubernetes.io/[a-z-]+)`, `[A-Za-z]+` \\| `([a-z.0-9]+)` \\|$").FindAllStringSubmatch(string(guide), -1)
	if len(rows) != 5 {
		t.Fatalf("the guide has %d rows of names and drivers", len(rows))
	}
	translator := csitranslation.New()
	for _, row := range rows {
		name, driver := row[1], row[2]
		if got, err := translator.GetCSINameFromInTreeName(name); err != nil || got != driver ||
			!translator.IsMigratedCSIDriverByName(driver) {
			t.Errorf("%s is mounted by %q, the guide says %q: %v", name, got, driver, err)
		}
	}
}
