package machinesets

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
)

// runs the script itself, which needs only Go.
func TestScript(t *testing.T) {
	f := newFixture(t, configv1.AzurePlatformType)
	f.createWorkerSet("linux-workers", "azure.yaml")
	script := filepath.Join(testdata, "../../../../hack/machineset.sh")
	t.Setenv("KUBECONFIG", lab.Cluster(t).Kubeconfig)
	run := func(args ...string) (string, int) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), script, args...).CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if exit != nil {
			return string(out), exit.ExitCode()
		}
		return string(out), 0
	}

	out, code := run()
	if code != 0 || !strings.Contains(f.readOutputFile(), "sku: 2022-datacenter-core") {
		t.Fatalf("%d: %s\n%s", code, out, f.readOutputFile())
	}
	if err := os.Remove(fileName); err != nil {
		t.Fatal(err)
	}
	if out, code := run("apply", "--replicas=0"); code != 0 {
		t.Fatal(out)
	}
	if _, err := f.get("winworker"); err != nil {
		t.Error(err)
	}
	if out, code := run("delete"); code != 0 {
		t.Fatal(out)
	}
	if out, code := run("remove"); code == 0 || !strings.Contains(out, "Usage:") {
		t.Errorf("%d: %s", code, out)
	}
	if f.readOutputFile() != "" {
		t.Error("a file was written")
	}
}
