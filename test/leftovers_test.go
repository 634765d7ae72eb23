package test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/windows-machine-config/wmco/lab/rig"
)

// objectsOf are the names of all objects of the cluster, but events, which end by themselves. It checks that none has a finalizer of ours.
func objectsOf(t *testing.T, r *rig.Rig) map[string]bool {
	t.Helper()
	config := rest.CopyConfig(r.Config)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{} // of kinds that are going out of use
	kinds, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerPreferredResources()
	must(t, err)
	all := map[string]bool{}
	for _, group := range kinds {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		must(t, err)
		for _, kind := range group.APIResources {
			if !slices.Contains(kind.Verbs, "list") || kind.Kind == "Event" {
				continue
			}
			objects, err := dynamic.NewForConfigOrDie(config).Resource(version.WithResource(kind.Name)).List(t.Context(), metav1.ListOptions{})
			must(t, err)
			for _, object := range objects.Items {
				all[fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())] = true
				for _, finalizer := range object.GetFinalizers() {
					if strings.Contains(finalizer, "windows") {
						t.Errorf("%s %s has finalizer %s", object.GetKind(), object.GetName(), finalizer)
					}
				}
			}
		}
	}
	return all
}

// expectLeft compares what there is more than before with a table of docs/uninstall.md.
func expectLeft(t *testing.T, before, after map[string]bool, heading string) {
	t.Helper()
	rows := tableOf(t, "../docs/uninstall.md", heading)
	used := map[string]bool{}
	for _, object := range slices.Sorted(maps.Keys(after)) {
		if before[object] {
			continue
		}
		row := slices.IndexFunc(rows, func(pattern *regexp.Regexp) bool { return pattern.MatchString(object) })
		if row < 0 {
			t.Errorf("%s is left, and docs/uninstall.md does not list it below %q", object, heading)
			continue
		}
		used[rows[row].String()] = true
	}
	for object := range before {
		if !after[object] && !strings.HasPrefix(object, "Lease ") {
			t.Errorf("%s was there before, and is gone", object)
		}
	}
	for _, row := range rows {
		if !used[row.String()] {
			t.Errorf("docs/uninstall.md lists below %q what is not left: %s", heading, row)
		}
	}
}

// tableOf are the first three cells of the rows of the table below a heading, kind, namespace and name, as patterns for objects. `<…>` is
// any text.
func tableOf(t *testing.T, path, heading string) []*regexp.Regexp {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	_, section, found := strings.Cut(string(data), "# "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n#")
	cells := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (?:`([^`]*)`)? *\\| `([^`]+)` \\|").FindAllStringSubmatch(section, -1)
	if !found || len(cells) == 0 {
		t.Fatalf("%s has no table below %q", path, heading)
	}
	var rows []*regexp.Regexp
	for _, cell := range cells {
		object := regexp.QuoteMeta(cell[1] + " " + cell[2] + "/" + cell[3])
		rows = append(rows, regexp.MustCompile("^"+regexp.MustCompile(`<[^>]*>`).ReplaceAllString(object, "[^/]+")+"$"))
	}
	return rows
}
