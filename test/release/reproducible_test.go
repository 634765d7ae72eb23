// Package release proves of what a release consists of what takes a build of its own.
package release

import (
	"os/exec"
	"strings"
	"testing"
)

// Of the real payload the smallest component is built twice, the second time with an empty cache; `make
// payload-reproducible` does that with all.
func TestTheRealPayloadIsTheSameTwice(t *testing.T) {
	command := exec.CommandContext(t.Context(), "go", "run", "./hack/payload", "-reproducible",
		"-components", "kube-log-runner")
	command.Dir = "../.."
	printed, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	if !strings.Contains(string(printed), "kube-log-runner.exe is the same twice") {
		t.Errorf("it says %s", printed)
	}
}
