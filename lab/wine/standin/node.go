package standin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// NodeProgram is the path of the node program on every host. Executables created by payload.Options.Program
// start it.
const NodeProgram = `C:\ProgramData\wmco-lab\node.exe`

// Launcher is the file name under which Build writes the program at the start of every executable of the lab's
// payload. Its content is payload.Options.Program.
const Launcher = "launcher.exe"

const nodePackage = "github.com/windows-machine-config/wmco/lab/wine/standin/program"

// BuildNode builds the node program to a file. It must run inside the module's directory. The first build takes
// some minutes.
func BuildNode(ctx context.Context, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("build the lab's node program: %w", err)
	}
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w",
		"-o", path, nodePackage)
	command.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	output, err := command.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("build the lab's node program: there is no go command in PATH: %w", err)
	}
	if err != nil {
		return fmt.Errorf("build the lab's node program: %w\n%s", err, output)
	}
	content, err := os.ReadFile(path)
	if err == nil {
		content, err = alignSections(content)
	}
	if err == nil {
		err = replaceFile(path, content)
	}
	if err != nil {
		return fmt.Errorf("build the lab's node program: %w", err)
	}
	return nil
}
