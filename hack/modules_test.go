// Package hack has the scripts that the Makefile calls; here are the tests of what holds for all modules of the
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

// versions returns the version that a go.mod requires of each module.
func versions(t *testing.T, dir string) map[string]string {
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

// ofThePrograms returns the modules that the operator and the lab are compiled from.
func ofThePrograms(t *testing.T) map[string]bool {
	t.Helper()
	command := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./cmd/wmco", "./lab/demo")
	command.Dir = ".."
	printed, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := map[string]bool{}
	for module := range strings.FieldsSeq(string(printed)) {
		modules[module] = true
	}
	return modules
}

// The control plane and OLM's validators share half of their packages with the product. Go compiles a package a second
// time for a module in which anything below it has another version: a first build would take minutes more.
func TestTheModulesThatAreBuiltTogetherRequireTheSameVersions(t *testing.T) {
	root, compiled := versions(t, "."), ofThePrograms(t)
	for _, dir := range []string{"lab/controlplane", "hack/bundle/validate"} {
		for module, version := range versions(t, dir) {
			if want := root[module]; compiled[module] && version != want {
				t.Errorf("%s/go.mod requires %s %s, and go.mod requires %s: go -C %s mod edit -require=%s@%s, then go mod tidy",
					dir, module, version, want, dir, module, want)
			}
		}
	}
}

// The lab's module reads what the operator writes for the kubelet and for kube-proxy, in place of the modules that
// these are built from.
func TestTheLabsKubernetesIsTheOneOfTheNodes(t *testing.T) {
	const module = "k8s.io/kubernetes"
	want := versions(t, "lab/controlplane")[module]
	for _, dir := range []string{"payload/kubelet", "payload/kube-proxy"} {
		if got := versions(t, dir)[module]; got != want {
			t.Errorf("%s is built from %s %s, and lab/controlplane has %s", dir, module, got, want)
		}
	}
}
