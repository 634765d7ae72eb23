// Package release contains the checks of a release that need a separate build.
package release

import (
	"os/exec"
	"strings"
	"testing"
)

// This test builds the smallest component of the real payload twice, the second time with an empty cache. `make
// payload-reproducible` builds all components twice.
func TestPayload_IsReproducible(t *testing.T) {
	command := exec.CommandContext(t.Context(), "go", "run", "./hack/payload", "-reproducible",
		"-components", "kube-log-runner")
	command.Dir = "../.."
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if !strings.Contains(string(output), "kube-log-runner.exe is the same twice") {
		t.Errorf("it says %s", output)
	}
}
