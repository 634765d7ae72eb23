package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The plugin is for the machines of administrators, which are not only Linux. A processor makes no difference to it.
func TestThePluginIsBuiltForWindowsAndMacOS(t *testing.T) {
	for _, system := range []string{"windows", "darwin"} {
		t.Run(system, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "kubectl-windows")
			build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, "./cmd/kubectl-windows")
			build.Dir = "../.."
			build.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
			if printed, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, printed)
			}
			if info, err := os.Stat(program); err != nil || info.Size() == 0 {
				t.Errorf("there is no program: %v", err)
			}
		})
	}
}
