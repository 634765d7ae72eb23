package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Without KUBECTL the script calls the kubectl of PATH, and not itself recursively. The kubectl of this test
// reports a host. R-017
func TestDeployScript_CallsKubectlFromPath(t *testing.T) {
	dir := t.TempDir()
	program := "#!/bin/sh\ncase \"$*\" in *windowsinstances*) echo windowsinstance/one ;; esac\n"
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	script := exec.CommandContext(t.Context(), "../hack/deploy", "delete")
	script.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "FUNCNEST=10"}
	output, err := script.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "the operator has 1 hosts") {
		t.Errorf("error %v: %.1000s", err, output)
	}
}

// The script reports a removal that does not end, and a remedy. kubectl alone would wait forever for the pod of a
// disconnected node or for a namespace. R-017
func TestDeployScript_StuckRemovalReported(t *testing.T) {
	for _, test := range []struct{ name, fails, want string }{
		{"a pod", "deployment", "get pods -o wide"},
		{"a namespace", "-k", "kubectl describe namespace openshift-windows-machine-config-operator"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			program := "#!/bin/sh\necho \"$*\" >>" + dir + "/said\ncase \"$*\" in *delete*" + test.fails + "*) exit 1 ;; esac\n"
			if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(program), 0o755); err != nil {
				t.Fatal(err)
			}
			script := exec.CommandContext(t.Context(), "../hack/deploy", "delete")
			script.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
			output, err := script.CombinedOutput()
			if err == nil || !strings.Contains(string(output), test.want) {
				t.Errorf("error %v: %s", err, output)
			}
			log, err := os.ReadFile(filepath.Join(dir, "said"))
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(string(log)), "\n")
			if last := lines[len(lines)-1]; !strings.Contains(last, test.fails) || !strings.Contains(last, "--timeout=") {
				t.Errorf("the last call was kubectl %s", last)
			}
		})
	}
}
