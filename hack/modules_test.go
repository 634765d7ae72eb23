// Package hack contains the scripts that the Makefile calls. Its tests check properties of all modules in the
// repository.
package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// requiredVersions returns the required version of each module in a go.mod.
func requiredVersions(t *testing.T, dir string) map[string]string {
	t.Helper()
	path := filepath.Join("..", dir, "go.mod")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse(path, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	required := map[string]string{}
	for _, r := range file.Require {
		required[r.Mod.Path] = r.Mod.Version
	}
	return required
}

// programModules returns the modules that are compiled into the operator and the lab.
func programModules(t *testing.T) map[string]bool {
	t.Helper()
	command := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./cmd/wmco", "./lab/demo")
	command.Dir = ".."
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := map[string]bool{}
	for module := range strings.FieldsSeq(string(output)) {
		modules[module] = true
	}
	return modules
}

// The control plane and OLM's validators share half of their packages with the product. If a module requires
// another version of any dependency, Go compiles the dependent packages again. A first build would take minutes
// longer.
func TestModules_BuiltTogetherRequireSameVersions(t *testing.T) {
	root, compiled := requiredVersions(t, "."), programModules(t)
	for _, dir := range []string{"lab/controlplane", "hack/bundle/validate"} {
		for module, version := range requiredVersions(t, dir) {
			if want := root[module]; compiled[module] && version != want {
				t.Errorf("%s/go.mod requires %s %s, and go.mod requires %s: go -C %s mod edit -require=%s@%s, then go mod tidy",
					dir, module, version, want, dir, module, want)
			}
		}
	}
}

// The lab's module parses the operator's configuration for the kubelet and for kube-proxy, instead of the modules
// of these programs.
func TestModules_LabKubernetesMatchesNodes(t *testing.T) {
	const module = "k8s.io/kubernetes"
	want := requiredVersions(t, "lab/controlplane")[module]
	minor, _, _ := strings.Cut(strings.TrimPrefix(want, "v1."), ".")
	dir := "payload/kubernetes-1." + minor
	if got := requiredVersions(t, dir)[module]; got != want {
		t.Errorf("%s is built from %s %s, and lab/controlplane has %s", dir, module, got, want)
	}
}
