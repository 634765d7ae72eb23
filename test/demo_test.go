package test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/lab/linuxns"
)

// This is the main scenario as a user runs it: the demo's own program, a separate operator process, and port 22 in
// a separate network.
func TestDemo_HostsBecomeReadyAndNothingIsLeft(t *testing.T) {
	temp := t.TempDir()
	log := filepath.Join(t.TempDir(), "operator.log")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "../build/lab", "demo", "--once", "--hosts", "2", "--limit", "3m",
		"--operator-log", log)
	command.Env = append(os.Environ(), "TMPDIR="+temp)
	output, err := command.CombinedOutput()
	if bytes.Contains(output, []byte(linuxns.ErrUnavailable.Error())) && os.Getuid() != 0 {
		t.Skipf("SKIPPED: the demo: %s", output)
	}
	if err != nil {
		t.Fatalf("the demo failed (is it built? run make build): %v\n%s", err, output)
	}
	for _, want := range []string{"10-9-0-1", "instance-2", "Ready"} {
		if !strings.Contains(string(output), want) {
			t.Errorf("the demo does not speak of %s:\n%s", want, output)
		}
	}
	left, err := os.ReadDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		t.Errorf("the demo left %s behind", entry.Name())
	}
	if data, err := os.ReadFile(log); err != nil || len(data) == 0 || bytes.Contains(data, []byte("forbidden")) {
		t.Errorf("the operator's log is missing, or speaks of a right that it lacks (%v):\n%s", err, data)
	}
}
