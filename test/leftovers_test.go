package test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/windows-machine-config/wmco/lab/testenv"
)

// objectsOf returns all objects of the cluster by name, with the writers and the times of the writes. Events are
// excluded, because they expire. It checks that no object has a finalizer of the operator.
func objectsOf(t *testing.T, r *testenv.Environment) map[string]string {
	t.Helper()
	config := rest.CopyConfig(r.Config)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{} // of deprecated kinds
	kinds, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerPreferredResources()
	requireNoError(t, err)
	all := map[string]string{}
	for _, group := range kinds {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		requireNoError(t, err)
		for _, kind := range group.APIResources {
			if !slices.Contains(kind.Verbs, "list") || kind.Kind == "Event" {
				continue
			}
			objects, err := dynamic.NewForConfigOrDie(config).Resource(version.WithResource(kind.Name)).List(t.Context(),
				metav1.ListOptions{})
			requireNoError(t, err)
			for _, object := range objects.Items {
				all[fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())] = formatHistory(&object)
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

// formatHistory returns the creation time of an object, and the writer and time of each write.
func formatHistory(object *unstructured.Unstructured) string {
	var b strings.Builder
	fmt.Fprintf(&b, "made at %s", object.GetCreationTimestamp().Format(time.TimeOnly))
	for _, entry := range object.GetManagedFields() {
		fmt.Fprintf(&b, ", %s by %s", strings.TrimSpace(entry.Subresource+" "+string(entry.Operation)), entry.Manager)
		if entry.Time != nil {
			b.WriteString(" at " + entry.Time.Format(time.TimeOnly))
		}
	}
	return b.String()
}

// expectLeft waits until the additional objects match a table of docs/uninstall.md, because garbage collection
// takes time.
func expectLeft(t *testing.T, r *testenv.Environment, before map[string]string, heading string) {
	t.Helper()
	rows := tableOf(t, "../docs/uninstall.md", heading)
	var differences []string
	for deadline := time.Now().Add(waitTimeout); time.Now().Before(deadline); time.Sleep(time.Second) {
		if differences = differencesLeft(rows, before, objectsOf(t, r)); len(differences) == 0 {
			return
		}
	}
	t.Errorf("what is left is not what docs/uninstall.md lists below %q:\n%s", heading, strings.Join(differences, "\n"))
}

// differencesLeft returns the differences between the additional objects and the rows, one per line.
func differencesLeft(rows []*regexp.Regexp, before, after map[string]string) []string {
	var differences []string
	used := map[string]bool{}
	for _, object := range slices.Sorted(maps.Keys(after)) {
		if _, was := before[object]; was {
			continue
		}
		row := slices.IndexFunc(rows, func(pattern *regexp.Regexp) bool { return pattern.MatchString(object) })
		if row < 0 {
			differences = append(differences, fmt.Sprintf("%s is left, and is not listed (%s)", object, after[object]))
			continue
		}
		used[rows[row].String()] = true
	}
	for _, object := range slices.Sorted(maps.Keys(before)) {
		if _, is := after[object]; !is && !strings.HasPrefix(object, "Lease ") {
			differences = append(differences, object+" was there before, and is gone")
		}
	}
	for _, row := range rows {
		if !used[row.String()] {
			differences = append(differences, "listed, and not left: "+row.String())
		}
	}
	return differences
}

// tableOf returns the first three cells (kind, namespace and name) of each row in the table below a heading, as
// patterns for objects. `<…>` is any text.
func tableOf(t *testing.T, path, heading string) []*regexp.Regexp {
	t.Helper()
	data, err := os.ReadFile(path)
	requireNoError(t, err)
	_, section, found := strings.Cut(string(data), "# "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n#")
	cells := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (?:`([^`]*)`)? *\\| `([^`]+)` \\|").FindAllStringSubmatch(section,
		-1)
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
