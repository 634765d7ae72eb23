package wine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// buildPrograms builds the programs that run hosts. If a program is up to date, only the lookup in the Go build
// cache remains.
func (b *Base) buildPrograms(ctx context.Context, repository string) error {
	bin := filepath.Join(b.Dir, binDir)
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	for _, program := range []struct {
		system, source string
		path           *string
	}{
		{"linux", "machine", &b.machine}, {"windows", "sshd", &b.sshd}, {"windows", "refuse", &b.refuse},
	} {
		path, err := buildProgram(ctx, repository, program.system, program.source, bin)
		if err != nil {
			return err
		}
		*program.path = path
	}
	return nil
}

// buildProgram builds lab/wine/<name>. The new program replaces the previous one atomically, because the
// previous one may be running.
func buildProgram(ctx context.Context, repository, system, name, dir string) (string, error) {
	path := filepath.Join(dir, filepath.Base(name))
	if system == "windows" {
		path += ".exe"
	}
	temp, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	built := filepath.Join(temp, filepath.Base(path))
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o",
		built, "./lab/wine/"+name)
	command.Dir = repository
	command.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0", "GOWORK=off",
		"GOFLAGS=-mod=readonly")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build lab/wine/%s: %w: %s", name, err, lastLines(string(output)))
	}
	old, err := digestFiles(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if now, err := digestFiles(built); err != nil || now == old {
		return path, err
	}
	return path, os.Rename(built, path)
}

func digestFiles(paths ...string) (string, error) {
	hash := sha256.New()
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%d\n", len(data))
		hash.Write(data)
	}
	return hex.EncodeToString(hash.Sum(nil))[:12], nil
}

// lastLines returns the end of an output, for an error message.
func lastLines(output string) string {
	const limit = 1 << 10
	output = strings.TrimSpace(output)
	return output[max(0, len(output)-limit):]
}
