package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Without KUBECTL the script calls the kubectl of PATH, and not itself again and again. This one says that there is a host. R-017
func TestTheScriptTakesKubectlByItsName(t *testing.T) {
	folder := t.TempDir()
	program := "#!/bin/sh\ncase \"$*\" in *windowsinstances*) echo windowsinstance/one ;; esac\n"
	if err := os.WriteFile(filepath.Join(folder, "kubectl"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	script := exec.CommandContext(t.Context(), "../hack/deploy", "delete")
	script.Env = []string{"PATH=" + folder + ":" + os.Getenv("PATH"), "FUNCNEST=10"}
	printed, err := script.CombinedOutput()
	if err == nil || !strings.Contains(string(printed), "the operator has 1 hosts") {
		t.Errorf("error %v: %.1000s", err, printed)
	}
}
