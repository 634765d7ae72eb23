package docs_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

// kindPages maps the pages of the kinds to their definitions.
var kindPages = map[string]string{
	"windowsinstance.md":         "windowsinstances",
	"windowsdisruptionpolicy.md": "windowsdisruptionpolicies",
}

// fieldSchema is the part of a field's schema that a page describes.
type fieldSchema struct {
	Default   any                    `json:"default"`
	Enum      []string               `json:"enum"`
	Maximum   int64                  `json:"maxLength"`
	MaxItems  int64                  `json:"maxItems"`
	Required  []string               `json:"required"`
	Fields    map[string]fieldSchema `json:"properties"`
	ListItems *fieldSchema           `json:"items"`
}

// readSpecSchema returns the schema of the spec of a kind.
func readSpecSchema(t *testing.T, plural string) fieldSchema {
	t.Helper()
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					Root struct {
						Fields struct {
							Spec fieldSchema `json:"spec"`
						} `json:"properties"`
					} `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	file := filepath.Join("..", "deploy", "crd", "windowsmachineconfig.openshift.io_"+plural+".yaml")
	if err := yaml.Unmarshal([]byte(readText(t, file)), &definition); err != nil {
		t.Fatal(err)
	}
	if len(definition.Spec.Versions) != 1 {
		t.Fatalf("%s has %d versions", file, len(definition.Spec.Versions))
	}
	return definition.Spec.Versions[0].Schema.Root.Fields.Spec
}

// fieldSection returns the section of a field, without line breaks.
func fieldSection(t *testing.T, page, name string) string {
	t.Helper()
	return strings.Join(strings.Fields(readSection(t, page, "### `"+name+"`")), " ")
}

func TestEachFieldOfTheSpecsHasASection(t *testing.T) {
	for page, plural := range kindPages {
		t.Run(page, func(t *testing.T) {
			spec := readSpecSchema(t, plural)
			for name, schema := range spec.Fields {
				section := fieldSection(t, page, name)
				want := []string{describeDefault(name, spec, schema)}
				if schema.Maximum > 0 && strings.Contains(section, "characters") {
					want = append(want, fmt.Sprintf("at most %d characters", schema.Maximum))
				}
				if schema.MaxItems > 0 {
					want = append(want, fmt.Sprintf("at most %d entries", schema.MaxItems))
				}
				for _, value := range schema.Enum {
					want = append(want, "`"+value+"`")
				}
				nested := schema.Fields
				if schema.ListItems != nil {
					nested = schema.ListItems.Fields
				}
				for field := range nested {
					want = append(want, "`"+field+"`")
				}
				for _, text := range want {
					if !strings.Contains(section, text) {
						t.Errorf("the section of %s does not have %q: %s", name, text, section)
					}
				}
			}
			for _, heading := range regexp.MustCompile("(?m)^### `([A-Za-z]+)`$").FindAllStringSubmatch(readText(t, page), -1) {
				if _, found := spec.Fields[heading[1]]; !found {
					t.Errorf("the page has a section for %s, which the spec does not have", heading[1])
				}
			}
		})
	}
	for name, want := range map[string]time.Duration{"failureDeadline": disruptionpolicy.DefaultFailureDeadline,
		"drainTimeout": disruptionpolicy.DefaultDrainTimeout} {
		if text := fmt.Sprintf("Default: `%dm`.", want/time.Minute); !strings.Contains(fieldSection(t, "windowsdisruptionpolicy.md", name), text) {
			t.Errorf("docs/windowsdisruptionpolicy.md must have for %s: %s", name, text)
		}
	}
}

// describeDefault returns the default of a field as the pages describe it.
func describeDefault(name string, spec, schema fieldSchema) string {
	switch {
	case schema.Default != nil:
		return fmt.Sprintf("Default: `%v`.", schema.Default)
	case slices.Contains(spec.Required, name):
		return "Required."
	}
	return "Default: "
}

func TestKindPages_HaveValidExamples(t *testing.T) {
	for page, newObject := range map[string]func() any{
		"windowsinstance.md":         func() any { return &v1alpha1.WindowsInstance{} },
		"windowsdisruptionpolicy.md": func() any { return &v1alpha1.WindowsDisruptionPolicy{} },
	} {
		t.Run(page, func(t *testing.T) {
			examples := 0
			for paragraph := range strings.SplitSeq(readSection(t, page, "## Example"), "\n\n") {
				if !strings.HasPrefix(paragraph, "    apiVersion: ") {
					continue
				}
				examples++
				if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll("\n"+paragraph, "\n    ", "\n")), newObject()); err != nil {
					t.Error(err)
				}
			}
			if examples == 0 {
				t.Error("there is no example")
			}
			for _, heading := range []string{"## Fields", "## Waiting", "## Debugging"} {
				if readSection(t, page, heading) == "" {
					t.Errorf("there is nothing below %s", heading)
				}
			}
		})
	}
}

// The messages of conditions, in code font, must be in the code. A placeholder such as <name> matches any text.
func TestTheConditionsOfTheKindsHaveSectionsWithTheirMessages(t *testing.T) {
	source := &strings.Builder{}
	err := filepath.WalkDir("../internal/controller", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source.WriteString(readText(t, path))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for page, conditions := range map[string][]string{
		"windowsinstance.md": {v1alpha1.ConditionReachable, v1alpha1.ConditionSupported, v1alpha1.ConditionPrepared, v1alpha1.ConditionInstalled,
			v1alpha1.ConditionJoined, v1alpha1.ConditionNetworkReady, v1alpha1.ConditionReady, v1alpha1.ConditionUpToDate},
		"windowsdisruptionpolicy.md": {v1alpha1.ConditionValid, v1alpha1.ConditionProgressing, v1alpha1.ConditionStopped},
	} {
		documented := map[string]bool{}
		for _, condition := range conditions {
			documented[condition] = true
			section := strings.Join(strings.Fields(readSection(t, page, "### "+condition)), " ")
			if !strings.Contains(section, "True") || !strings.Contains(section, "False") {
				t.Errorf("docs/%s must explain True and False of %s", page, condition)
			}
			for _, message := range codeTexts(section) {
				if !strings.HasSuffix(message, ".") {
					continue
				}
				for _, part := range regexp.MustCompile(`<[a-z]+>`).Split(message, -1) {
					if part != "." && !strings.Contains(source.String(), part) {
						t.Errorf("docs/%s: no condition has the message %q", page, message)
					}
				}
			}
		}
		text := readText(t, page)
		_, text, _ = strings.Cut(text, "\n## Conditions\n")
		text, _, _ = strings.Cut(text, "\n## ")
		for _, heading := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllStringSubmatch(text, -1) {
			if !documented[heading[1]] {
				t.Errorf("docs/%s has a section for %s, which is no condition: %v", page, heading[1], slices.Sorted(maps.Keys(documented)))
			}
		}
	}
}
