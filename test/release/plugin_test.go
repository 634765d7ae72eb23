package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The plugin is for administrators' machines with various operating systems. The processor architecture makes no
// difference.
func TestPlugin_BuildsForWindows(t *testing.T) {
	program := filepath.Join(t.TempDir(), "kubectl-windows")
	goFor(t, "windows", "build", "-trimpath", "-o", program, "./cmd/kubectl-windows")
	if info, err := os.Stat(program); err != nil || info.Size() == 0 {
		t.Errorf("there is no program: %v", err)
	}
}

// Compiling would take minutes, since nothing else is built for macOS. `make plugins` does that.
func TestPlugin_PackagesHaveFilesForMacOS(t *testing.T) {
	goFor(t, "darwin", "list", "-deps", "./cmd/kubectl-windows")
}

func goFor(t *testing.T, system string, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", arguments...)
	command.Dir = "../.."
	command.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}
