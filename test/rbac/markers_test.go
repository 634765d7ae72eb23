package rbac

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/lab/audit"
)

// marker is an RBAC marker in the code. deploy/rbac/role.yaml is generated from these markers.
type marker struct {
	at     string // file and line
	values map[string][]string
}

// readMarkers reads the markers of the operator's code.
func readMarkers(t *testing.T) []marker {
	t.Helper()
	var found []marker
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for number, line := range strings.Split(string(data), "\n") {
			if text, ok := strings.CutPrefix(line, "// +kubebuilder:rbac:"); ok {
				name, _ := filepath.Rel(root, path)
				found = append(found, marker{at: fmt.Sprintf("%s:%d", name, number+1), values: parseMarker(text)})
			}
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%d markers, error %v", len(found), err)
	}
	return found
}

func parseMarker(text string) map[string][]string {
	values := map[string][]string{}
	for _, field := range strings.Split(text, ",") {
		name, list, _ := strings.Cut(field, "=")
		for _, value := range strings.Split(list, ";") {
			values[name] = append(values[name], strings.Trim(value, `"`))
		}
	}
	return values
}

// hasRight reports whether the marker grants the permission. All namespaced roles are in the same namespace.
func (m marker) hasRight(right audit.Right) bool {
	has := func(field, value string) bool { return slices.Contains(m.values[field], value) }
	_, named := m.values["resourceNames"]
	_, namespaced := m.values["namespace"]
	return has("groups", right.Group) && has("resources", right.Resource) && has("verbs", right.Verb) &&
		namespaced == (right.Namespace != "") &&
		(named && has("resourceNames", right.Name) || !named && right.Name == "")
}

// markersOf returns the positions of the markers that grant a permission.
func markersOf(markers []marker, right audit.Right) string {
	var at []string
	for _, m := range markers {
		if m.hasRight(right) {
			at = append(at, m.at)
		}
	}
	if len(at) == 0 {
		return "no marker: run make generate"
	}
	return strings.Join(at, ", ")
}

func TestStoryEachRightHasAMarkerThatAsksForIt(t *testing.T) {
	markers := readMarkers(t)
	for _, right := range shippedRights(t, "ns") {
		if at := markersOf(markers, right); strings.HasPrefix(at, "no marker") {
			t.Errorf("%s: %s", right, at)
		}
	}
}
