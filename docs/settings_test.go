package docs_test

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// readSection returns the text below a heading, without its subsections.
func readSection(t *testing.T, path, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(readText(t, path), "\n"+heading+"\n")
	if !found {
		t.Fatalf("docs/%s has no heading %q", path, heading)
	}
	text, _, _ = strings.Cut(text, "\n#")
	return text
}

// tableRows returns the cells of the rows in the table that begins with a line.
func tableRows(t *testing.T, text, head string) [][]string {
	t.Helper()
	_, table, found := strings.Cut(text, head+"\n")
	if !found {
		t.Fatalf("there is no table %s", head)
	}
	var rows [][]string
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if !strings.HasPrefix(cells[0], "---") {
			rows = append(rows, cells)
		}
	}
	return rows
}

var code = regexp.MustCompile("`([^`]+)`")

// codeTexts returns the texts in code font.
func codeTexts(text string) []string {
	var texts []string
	for _, match := range code.FindAllStringSubmatch(text, -1) {
		texts = append(texts, match[1])
	}
	return texts
}

func TestSettings_FollowedKubeletFieldsDocumented(t *testing.T) {
	var documented []string
	for _, row := range tableRows(t, readSection(t, "settings.md", "## Kubelet"), "| followed | fields |") {
		documented = append(documented, codeTexts(row[1])...)
	}
	slices.Sort(documented)
	followed := nodespec.FollowedKubeletFields()
	for _, field := range followed {
		if !slices.Contains(documented, field) {
			t.Errorf("docs/settings.md does not say that Windows nodes follow %s", field)
		}
	}
	for _, field := range documented {
		if !slices.Contains(followed, field) {
			t.Errorf("docs/settings.md says that Windows nodes follow %s", field)
		}
	}
	if len(documented) != len(slices.Compact(slices.Clone(documented))) {
		t.Error("docs/settings.md has a field twice")
	}
}

func TestSettings_LogRotationDefaultsDocumented(t *testing.T) {
	rows := tableRows(t, readSection(t, "settings.md", "## Logs"), "| variable | default | meaning |")
	values := map[string]string{}
	for _, row := range rows {
		if variable, value := codeTexts(row[0]), codeTexts(row[1]); len(value) == 1 {
			values[variable[0]] = value[0]
		}
	}
	const size, age, flush = "SERVICES_LOG_FILE_SIZE", "SERVICES_LOG_FILE_AGE", "SERVICES_LOG_FLUSH_INTERVAL"
	defaults, err := nodespec.ParseLogSettings("", "", "")
	if err != nil {
		t.Fatal(err)
	}
	written, err := nodespec.ParseLogSettings(values[size], values[age], values[flush])
	if err != nil || len(rows) != 3 || written != defaults {
		t.Errorf("docs/settings.md says %v, the code has %+v: %v", values, defaults, err)
	}
	if defaults.FileAge < 24*time.Hour || defaults.FileSize == "" {
		t.Errorf("rotation is off: %+v", defaults)
	}
}

// The lifted limits of earlier guides link to the description of the lifting.
func TestLimits_LiftedLimitsNamed(t *testing.T) {
	limits := map[string]string{}
	for _, row := range tableRows(t, readSection(t, "support.md", "## Limits"), "| | limit of legacy operators | now |") {
		limits[row[0]] = row[len(row)-1]
	}
	for limit, heading := range map[string]string{"L-01": "settings.md#proxy", "L-02": "registries.md#pull-secret",
		"L-03": "registries.md#mirrors", "L-12": "settings.md#storage"} {
		if now := limits[limit]; !strings.HasPrefix(now, "lifted") || !strings.Contains(now, heading) {
			t.Errorf("docs/support.md says of %s: %q", limit, now)
		}
	}
}

// These statements of the guide must not get lost.
func TestSettings_GuideHasRequiredStatements(t *testing.T) {
	for _, test := range []struct {
		heading, page string
		texts         []string
	}{
		{"## Kubelet", "settings.md", []string{"`api-int.<cluster>.<domain>`", "internal API server only", "no host fetches an Ignition file"}}, // D-3
		{"## Network", "settings.md", []string{"`exclude-nics=`", "`169.254.169.254`"}},
		//
		{"### Hybrid networking", "settings.md", []string{"The **type** of the network is chosen when the cluster is installed", "cannot be changed",
			"**before a Windows node joins**"}},
		{"## Pull secret", "registries.md", []string{"Public images need nothing", "is already on the node", "`imagePullPolicy: IfNotPresent`"}},
		{"## Storage", "settings.md", []string{"`kubernetes.io/aws-ebs`", "CSI migration", "csi-proxy", "HostProcess"}},
		{"### A disconnected cluster", "registries.md", []string{"pause:3.9", "--all", "foreign layers", "RELATED_IMAGE_WINDOWS_PAUSE",
			"`relatedImages`"}},
	} {
		t.Run(test.heading, func(t *testing.T) {
			text := readSection(t, test.page, test.heading)
			for _, part := range test.texts {
				if !strings.Contains(text, part) {
					t.Errorf("docs/%s does not say: %s", test.page, part)
				}
			}
		})
	}
}

//
func TestWorkloads_GuideHasRequiredStatements(t *testing.T) {
	workloads := readText(t, "workloads.md")
	for _, part := range []string{"`docker`", "examples/runtime-class-docker.yaml",
		"The image must match the Windows version of the node", "10.0.20348"} {
		if !strings.Contains(workloads, part) {
			t.Errorf("docs/workloads.md does not say: %s", part)
		}
	}
}

func TestSettings_ServiceIdentitiesDocumented(t *testing.T) {
	rows := map[string][]string{}
	for _, row := range tableRows(t, readSection(t, "settings.md", "## Services and their rights"),
		"| service | user | group | may |") {
		for _, service := range codeTexts(row[0]) {
			rows[service] = row[1:]
		}
	}
	for _, identity := range nodespec.IdentityTable() {
		want := []string{"`" + identity.User + "`", "`" + identity.Group + "`", identity.Rights}
		if !slices.Equal(rows[identity.Service], want) {
			t.Errorf("docs/settings.md says of %s %q, the code %q", identity.Service, rows[identity.Service], want)
		}
		delete(rows, identity.Service)
	}
	for service, row := range rows {
		if !strings.HasPrefix(strings.Join(row, ""), "nothing") {
			t.Errorf("docs/settings.md gives %s an identity, which the code does not know", service)
		}
	}
}

//
func TestContainerd_HasHandlersOfRuntimeClasses(t *testing.T) {
	spec := newNodeSpec(t, newInputs(t))
	i := slices.IndexFunc(spec.Files, func(f nodespec.File) bool {
		return strings.HasSuffix(f.Path, `\containerd_conf.toml`)
	})
	if i < 0 {
		t.Fatal("containerd has no configuration")
	}
	for _, name := range []string{"runtime-class.yaml", "runtime-class-2022.yaml", "runtime-class-2025.yaml",
		"runtime-class-docker.yaml"} {
		handler := regexp.MustCompile(`(?m)^handler: '(.*)'$`).FindStringSubmatch(readText(t, "../examples/"+name))
		if handler == nil || !strings.Contains(spec.Files[i].Content, ".runtimes."+handler[1]+"]\n") {
			t.Errorf("examples/%s: containerd has no handler %q", name, handler)
		}
	}
}

func TestSupport_ClusterEventsDocumented(t *testing.T) {
	support := readSection(t, "support.md", "## How faults are reported")
	for _, c := range findConstants(t, "internal/controller/clusterconfig/*.go", "^reason") {
		if name := c.value.(*ast.BasicLit).Value; !strings.Contains(support, "`"+strings.Trim(name, `"`)+"`") {
			t.Errorf("docs/support.md does not name the event %s", name)
		}
	}
}
