package contract_test

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/lab/wine"
)

const (
	root = "../.."
	// hostTimeout is the maximum time for one test on a slow machine. The suite takes about a minute.
	hostTimeout = 10 * time.Minute
)

// requireWine skips the test if Wine hosts are unavailable.
func requireWine(t *testing.T) context.Context {
	t.Helper()
	if err := wine.Available(); err != nil {
		t.Skipf("SKIPPED: nothing was run under Wine: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), hostTimeout)
	t.Cleanup(cancel)
	return ctx
}

// forWindows returns a go command that builds for Windows.
func forWindows(ctx context.Context, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = root
	command.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	return command
}

// buildTests builds the test program of a package.
func buildTests(ctx context.Context, t *testing.T, of string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "test.exe")
	if output, err := forWindows(ctx, "test", "-c", "-o", path, of).CombinedOutput(); err != nil {
		t.Fatalf("cross-compile the tests of %s: %v\n%s", of, err, output)
	}
	return path
}

// bootHost starts a host with these files on its drive, keyed by Windows path.
func bootHost(ctx context.Context, t *testing.T, name, address string, files map[string]string,
	registry ...string) *wine.Host {
	t.Helper()
	base, err := wine.Prepare(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	h, err := wine.New(ctx, wine.Options{
		Base: base, Name: name, Address: netip.MustParseAddr(address), Files: files, Registry: registry,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := h.Start(ctx); err != nil {
		t.Fatal(err)
	}
	return h
}

// run runs a test program on a host. If the program fails, run logs its complete output, marked to distinguish it
// from the tests of this package. Otherwise run logs the skipped tests.
func run(ctx context.Context, t *testing.T, h *wine.Host, line string) {
	t.Helper()
	result, err := h.Exec(ctx, line)
	if err != nil {
		t.Fatalf("run %s: %v\n%s", line, err, markLines(result, ""))
	}
	if result.ExitCode != 0 {
		t.Errorf("%s failed with exit code %d:\n%s", line, result.ExitCode, markLines(result, ""))
		return
	}
	t.Logf("%s passed under Wine; not run or not shown there:\n%s", line, markLines(result, "--- SKIP: "))
}

// markLines returns the lines of a result that contain the part.
func markLines(result wine.Result, part string) string {
	var b strings.Builder
	for text := range strings.Lines(result.Stdout + result.Stderr) {
		if strings.Contains(text, part) {
			b.WriteString("wine> " + strings.TrimRight(text, "\r\n") + "\n")
		}
	}
	return b.String()
}
