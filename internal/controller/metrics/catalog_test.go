package metrics

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// reserved are labels that a scrape or the prometheus-operator adds: a metric's label of that name would be renamed.
var reserved = []string{"job", "instance", "namespace", "pod", "container", "service", "endpoint", "le", "quantile"}

func TestCatalog_EachMetricIsDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range Catalog() {
		if seen[d.Name] || !regexp.MustCompile(`^wmco_[a-z_]+$`).MatchString(d.Name) {
			t.Errorf("%s is there twice, or is no name of a metric of the operator", d.Name)
		}
		seen[d.Name] = true
		if !strings.HasSuffix(d.Help, ".") || len(d.Help) < 20 {
			t.Errorf("%s: %q is no help", d.Name, d.Help)
		}
		if counter := strings.HasSuffix(d.Name, "_total"); counter != (d.Type == TypeCounter) {
			t.Errorf("%s is a %s", d.Name, d.Type)
		}
		for _, label := range d.Labels {
			if slices.Contains(reserved, label.Name) || label.Values == "" {
				t.Errorf("%s has the label %q with the values %q", d.Name, label.Name, label.Values)
			}
		}
	}
	if len(seen) < 20 {
		t.Errorf("there are only %d", len(seen))
	}
}

// A metric created in another package would be missing from the documents, and its series would be unbounded.
func TestCatalog_NoMetricInOtherPackages(t *testing.T) {
	makes := regexp.MustCompile(`prometheus\.New(Gauge|Counter|Histogram|Summary|Desc|ConstMetric|Untyped)`)
	root, checked := filepath.Join("..", "..", ".."), 0
	for _, dir := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.HasPrefix(path, filepath.Join(root, "internal", "controller", "metrics")+string(filepath.Separator)) {
				return err
			}
			data, err := os.ReadFile(path)
			checked++
			if found := makes.Find(data); found != nil {
				t.Errorf("%s has %s: declare the metric in catalog.go", path, found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if checked < 100 {
		t.Errorf("%d files were looked at", checked)
	}
}

// A host may report arbitrary values, which may become labels. Only series that are deleted with an object of
// the API have no bound of their own.
func TestCatalog_ForgedValuesCreateBoundedSeries(t *testing.T) {
	for _, d := range Catalog() {
		t.Run(d.Name, func(t *testing.T) {
			product := 1
			for _, label := range d.Labels {
				if label.MaxValues == 0 {
					if !strings.HasPrefix(d.Name, "wmco_instance_") && label.Name != "node" && label.Name != "name" {
						t.Errorf("the label %s is for no object: %s", label.Name, label.Values)
					}
					return
				}
				product *= label.MaxValues + 1
			}
			if product > 160 {
				t.Errorf("there may be %d series", product)
			}
			if d.createSeries == nil {
				return
			}
			for i := range 1000 {
				createTestSeries(t, d, fmt.Sprintf("made up %d \xff", i))
			}
			if n := seriesOf(t, d.Name); n > product {
				t.Errorf("there are %d series, want at most %d", n, product)
			}
		})
	}
}

// createTestSeries creates a series with a value, which must not terminate the operator.
func createTestSeries(t *testing.T, d Definition, value string) {
	t.Helper()
	defer func() {
		if cause := recover(); cause != nil {
			t.Fatalf("%q ends the operator: %v", value, cause)
		}
	}()
	d.createSeries(value)
}

// seriesOf counts the series of a scrape.
func seriesOf(t *testing.T, name string) int {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return len(family.GetMetric())
		}
	}
	return 0
}

func TestLabelLimiter_ExcessValuesCountedAsOther(t *testing.T) {
	b := labelLimiter{maxValues: 2}
	var got []string
	for _, value := range []string{"a", "b", "c", "a", "d"} {
		got = append(got, b.limitValue(value))
	}
	if want := []string{"a", "b", Other, "a", Other}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The bounds are for hostile values. All values of the operator itself fit.
func TestCatalog_LimitsFitValuesOfOperator(t *testing.T) {
	for name, c := range map[string]struct {
		label   string
		files   []string
		pattern string
	}{
		"reasons": {"wmco_attempts_failed_total", []string{"api/v1alpha1/conditions.go", "internal/remote/errors.go",
			"internal/agentapi/agentapi.go"}, `(?m)^\tReason\w+ +.*= "(\w+)"`},
		"jobs": {"wmco_job_duration_seconds", []string{"internal/controller/instance/hostjobs/job.go"}, `Kind\w+ +Kind = "(\w+)"`},
		"causes": {"wmco_disruptions_total", []string{"api/v1alpha1/disruptionpolicy.go"},
			`Cause\w+ +DisruptionCause = "(\w+)"`},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]bool{}
			for _, file := range c.files {
				data, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(file)))
				if err != nil {
					t.Fatal(err)
				}
				for _, match := range regexp.MustCompile(c.pattern).FindAllStringSubmatch(string(data), -1) {
					values[match[1]] = true
				}
			}
			i := slices.IndexFunc(Catalog(), func(d Definition) bool { return d.Name == c.label })
			if atMost := Catalog()[i].Labels[0].MaxValues; len(values) < 5 || len(values) > atMost {
				t.Errorf("there are %d, and room for %d", len(values), atMost)
			}
		})
	}
}
