package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/policy/support"
	lab "github.com/windows-machine-config/wmco/lab/payload"
)

const repository = "../.."

func realTable(t *testing.T) Table {
	t.Helper()
	return mustTable(t, filepath.Join(repository, "payload", "components.yaml"))
}

// requirement matches a module requirement in a go.mod.
var requirement = regexp.MustCompile(`(?m)^(?:require)?\s+(\S+) (v\S+)(?: // indirect)?$`)

// moduleIn returns the module of a package from go.mod, without running Go, which would download the module.
func moduleIn(t *testing.T, e Executable) (path, version, goMod, goSum string) {
	t.Helper()
	dir := filepath.Join(repository, "payload", e.Module)
	for name, content := range map[string]*string{"go.mod": &goMod, "go.sum": &goSum} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		*content = string(data)
	}
	for _, match := range requirement.FindAllStringSubmatch(goMod, -1) {
		if strings.HasPrefix(e.Package+"/", match[1]+"/") && len(match[1]) > len(path) {
			path, version = match[1], match[2]
		}
	}
	return path, version, goMod, goSum
}

func TestTable(t *testing.T) {
	table := realTable(t)
	versions := map[string]string{}
	outputs := []string{}
	for _, c := range table.Components {
		for _, e := range c.Executables {
			outputs = append(outputs, e.Output)
			path, version, goMod, goSum := moduleIn(t, e)
			if len(c.Minors) == 0 || c.Minors[0] == lab.Kubernetes {
				versions[e.Output] = version
			}
			t.Run(c.String()+": "+e.Output+" is a tool of its module, at a version with a sum", func(t *testing.T) {
				if !regexp.MustCompile(`(?m)^(tool)?\s+` + regexp.QuoteMeta(e.Package) + `$`).MatchString(goMod) {
					t.Errorf("go.mod in payload/%s does not name the tool %s", e.Module, e.Package)
				}
				if !strings.Contains(goSum, path+" "+version+" h1:") || path == "" {
					t.Errorf("go.sum in payload/%s has no sum for %s %s", e.Module, path, version)
				}
				if strings.Contains(goMod, "replace") && regexp.MustCompile(`(?m)^replace`).MatchString(goMod) {
					t.Errorf("go.mod in payload/%s replaces a module", e.Module)
				}
			})
			t.Run(c.String()+": "+e.Output+" has its version from go.mod and from nowhere else", func(t *testing.T) {
				if v, err := parseVersion(version); err != nil || strings.Contains(mustRead(t, "components.yaml"), v.Number) {
					t.Errorf("components.yaml has the version %s too (%v)", version, err)
				}
			})
		}
	}
	t.Run("there are the twelve executables, two of them for each version of Kubernetes", func(t *testing.T) {
		if want := 10 + 2*len(support.CurrentLine().KubernetesMinors()); len(outputs) != want {
			t.Errorf("got %d, want %d: %q", len(outputs), want, outputs)
		}
	})
	t.Run("all parts of Kubernetes are of one release", func(t *testing.T) {
		kubelet := versions["kubelet.exe"]
		if versions["kube-proxy.exe"] != kubelet || versions["kube-log-runner.exe"] != strings.Replace(kubelet, "v1.", "v0.",
			1) {
			t.Errorf("got %v", versions)
		}
	})
	t.Run("each executable keeps its version in variables, but for the one that has none", func(t *testing.T) {
		for _, c := range table.Components {
			for _, e := range c.Executables {
				if len(e.Variables) == 0 && e.Output != "kube-log-runner.exe" {
					t.Errorf("%s sets no variable", e.Output)
				}
			}
		}
	})
}

func mustRead(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repository, "payload", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Tests run the lab's simulated components. Their results are meaningful only if the real payload has the same
// parts.
func TestTable_LabHasSameComponents(t *testing.T) {
	p, err := lab.Generate(t.TempDir(), "", "v1", lab.Options{SizePercent: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range realTable(t).Components {
		if len(c.Minors) > 0 && c.Minors[0] != lab.Kubernetes {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			stand, ok := p.Manifest().Component(c.Name)
			if !ok {
				t.Fatal("the lab does not have it")
			}
			if !reflect.DeepEqual(stand.Platforms, c.Platforms) || !reflect.DeepEqual(stand.Minors, c.Minors) {
				t.Errorf("the lab's is for %v %v and the real one for %v %v", stand.Platforms, stand.Minors, c.Platforms, c.Minors)
			}
			var files []string
			outputs := slices.Clone(c.Files)
			for _, f := range stand.Files {
				files = append(files, f.Path)
			}
			for _, e := range c.Executables {
				outputs = append(outputs, e.Output)
			}
			if slices.Sort(files); !reflect.DeepEqual(files, slices.Sorted(slices.Values(outputs))) {
				t.Errorf("the lab has %q and the table %q", files, outputs)
			}
			if c.External != "" {
				return
			}
			if _, version, _, _ := moduleIn(t, c.Executables[0]); stand.Version != version {
				t.Errorf("the lab has version %s and go.mod %s", stand.Version, version)
			}
		})
	}
}

func TestReadTable(t *testing.T) {
	entry := "components:\n- name: tool\n  executables:\n  - {output: tool.exe, module: tool, package: example.org/tool}\n"
	for name, test := range map[string]struct{ text, want string }{
		"a field that nobody knows":           {strings.Replace(entry, "/tool}", "/tool, sort: a}", 1), "sort"},
		"a component without executables":     {"components: [{name: tool}]", "either executables or external"},
		"an external component without files": {"components: [{name: tool, external: x}]", "names its files"},
		"a component with a name twice":       {"components: [{name: tool, external: x, files: [a.exe]}, {name: tool, external: x, files: [a.exe]}]", "twice"},
		"a program that is built twice": {entry + "  - {output: tool.exe, module: tool, package: example.org/tool}\n",
			"built twice"},
		"a program without .exe": {strings.Replace(entry, "tool.exe", "tool", 1), "not the file name"},
		"a module outside of the folder": {strings.Replace(entry, "module: tool", "module: ../tool", 1),
			"not the name of a folder"},
		"a variable with a space": {strings.Replace(entry, "/tool}", "/tool, variables: {a.b: c d}}", 1),
			"space"},
		"a template that cannot be read": {strings.Replace(entry, "/tool}", "/tool, variables: {a.b: '{{.Version'}}", 1),
			"a.b"},
		"a question without an answer": {strings.Replace(entry, "/tool}", "/tool, version: {arguments: [-v]}}", 1),
			"without an answer"},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "components.yaml")
			writeFile(t, path, test.text)
			if _, err := ReadTable(path, nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v", err)
			}
		})
	}
}

func TestParseVersion(t *testing.T) {
	for version, want := range map[string]Version{
		"v1.36.3":      {"v1.36.3", "1.36.3", "1", "36"},
		"v0.15.0-rc.4": {"v0.15.0-rc.4", "0.15.0-rc.4", "0", "15"},
	} {
		if got, err := parseVersion(version); err != nil || got != want {
			t.Errorf("%s: got %+v, error %v", version, got, err)
		}
	}
	for _, version := range []string{"", "1.2.3", "v1.2", "v1.2.3 x", "(devel)"} {
		if _, err := parseVersion(version); err == nil {
			t.Errorf("%q was accepted", version)
		}
	}
}

func TestReadTable_BuildForEachKubernetes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "components.yaml")
	writeFile(t, path, `components:
- name: kubelet
  kubernetes: true
  executables: [{output: kubelet.exe, module: kubernetes, package: example.org/kubelet}]
- name: cni
  executables: [{output: cni.exe, module: cni, package: example.org/cni}]
`)
	table, err := ReadTable(path, []string{"1.35", "1.36"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range table.Components {
		got = append(got, c.String()+" from "+c.Executables[0].Module)
	}
	want := []string{"kubelet for Kubernetes 1.35 from kubernetes-1.35", "kubelet for Kubernetes 1.36 from kubernetes-1.36", "cni from cni"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, c := range []struct {
		names, minors []string
		want          int
	}{{nil, nil, 3}, {nil, []string{"1.36"}, 2}, {[]string{"kubelet"}, nil, 2}, {[]string{"kubelet"}, []string{"1.35"}, 1},
		{[]string{"cni"}, []string{"1.35"}, 1}} {
		if kept, err := table.Select(c.names, c.minors); err != nil || len(kept) != c.want {
			t.Errorf("of %v for %v it has %v, error %v", c.names, c.minors, kept, err)
		}
	}
	if _, err := table.Select(nil, []string{"1.20"}); err == nil || !strings.Contains(err.Error(), "1.20") {
		t.Errorf("a version that is not served: %v", err)
	}
	if _, err := table.Select([]string{"other"}, nil); err == nil || strings.Count(err.Error(), "kubelet") != 1 {
		t.Errorf("an unknown name: %v", err)
	}
}

// Each served version of Kubernetes has its module, with that version. R-126
func TestModules_OneForEachKubernetes(t *testing.T) {
	for _, c := range realTable(t).Components {
		if len(c.Minors) == 0 {
			continue
		}
		if _, version, _, _ := moduleIn(t, c.Executables[0]); !strings.HasPrefix(version, "v"+c.Minors[0]+".") {
			t.Errorf("%s is built from version %s", c, version)
		}
	}
}
