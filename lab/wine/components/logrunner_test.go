package components_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/wine"
)

const (
	guestProgram = `C:\tests\guest.exe`
	rotatedLogs  = `C:\tests\logs.json`
	// laterLines is the number of lines that a program prints after the tested event.
	laterLines = 50
)

// The real kube-log-runner writes a log that another process holds open without FILE_SHARE_DELETE: both Windows
// and Wine refuse to rename such a file.
func TestLogRotation_SucceedsWhileLogIsRead(t *testing.T) {
	runner, guest := buildExecutable(t, "kube-log-runner", "kube-log-runner.exe"), buildGuest(t)
	ctx := requireWine(t)
	in := inputsOf(nodespec.Registries{})
	in.LogSettings = nodespec.LogSettings{FileSize: "4Ki"}
	spec, err := nodespec.Make(in)
	requireNoError(t, err)
	list, err := json.Marshal(spec.Logs)
	requireNoError(t, err)
	files := map[string]string{guestProgram: guest, rotatedLogs: writeLocalFile(t, list)}
	for _, service := range []string{nodespec.ServiceKubelet, nodespec.ServiceKubeProxy} {
		files[findRunner(t, spec, service)[0]] = runner
		files[nodespec.LogPath(service)] = writeLocalFile(t, nil)
	}
	h := start(ctx, t, wine.Options{Name: "LOGS", Address: netip.MustParseAddr("10.2.0.9"), Files: files})

	t.Run("the agent rotates it, and the program under kube-log-runner goes on to log", func(t *testing.T) {
		log := nodespec.LogPath(nodespec.ServiceKubelet)
		p := startPrinter(ctx, t, h, nodespec.ServiceKubelet, findRunner(t, spec, nodespec.ServiceKubelet))
		awaitState(ctx, t, "the log is too large", func() bool { return len(readFile(t, h, log)) > 4<<10 })

		before := lastNumber(readNumbers(readFile(t, h, log)))
		result, err := h.Exec(ctx, guestProgram+" rotate "+rotatedLogs)
		requireNoError(t, err)
		if result.ExitCode != 0 || result.Stdout+result.Stderr != "" {
			t.Fatalf("the agent could not rotate the log: %+v", result)
		}
		after := lastNumber(p.lineNumbers("printed"))
		awaitState(ctx, t, "there are later lines", func() bool { return lastNumber(p.lineNumbers("printed")) >= after+laterLines })
		if result := p.stop(ctx, t); result.ExitCode != 0 {
			t.Errorf("kube-log-runner ended with %+v", result)
		}

		if failed := p.lineNumbers("failed"); len(failed) > 0 {
			t.Errorf("the program could not print the lines %v", failed)
		}
		copied, kept := readNumbers(readRotated(t, h, log)), readNumbers(readFile(t, h, log))
		if len(copied) == 0 || !isRange(copied, 1, lastNumber(copied)) || lastNumber(copied) < before {
			t.Errorf("the log had the lines to %d, and the rotated one has %v", before, copied)
		}
		// docs/settings.md: a line that a service writes during a rotation may be lost. No other line may be
		// lost.
		if len(kept) == 0 || kept[0] <= lastNumber(copied) || kept[0] > after+1 || !isRange(kept, kept[0], lastNumber(p.lineNumbers("printed"))) {
			t.Fatalf("%d lines were rotated, those after %d were printed after the rotation, and the log has %v", len(copied), after, kept)
		}
		t.Logf("the log had lines to %d; to %d they were rotated; it goes on with %d; later than the rotation are those from %d to %d", before, lastNumber(copied), kept[0], after+1, lastNumber(kept))
	})

	// For this reason, the operator sets no rotation flags on kube-log-runner.
	t.Run("kube-log-runner's own rotation ends it", func(t *testing.T) {
		log, words := nodespec.LogPath(nodespec.ServiceKubeProxy), findRunner(t, spec, nodespec.ServiceKubeProxy)
		p := startPrinter(ctx, t, h, nodespec.ServiceKubeProxy, append(words, "-log-file-size=4Ki"))
		awaitState(ctx, t, "lines cannot be printed", func() bool { return len(p.lineNumbers("failed")) >= laterLines })
		result := p.stop(ctx, t)
		if result.ExitCode != 1 || !strings.Contains(result.Stderr, "rename "+log) {
			t.Errorf("kube-log-runner ended with %+v", result)
		}
		output, failed, logged := lastNumber(p.lineNumbers("printed")), p.lineNumbers("failed"), readNumbers(readFile(t, h, log))
		if !isRange(failed, failed[0], output) {
			t.Errorf("of %d lines, these could not be printed: %v", output, failed)
		}
		if len(logged) == 0 || !isRange(logged, 1, lastNumber(logged)) || lastNumber(logged) >= failed[0] {
			t.Errorf("line %d is the first that could not be printed, and the log has %v", failed[0], logged)
		}
	})
}

// findRunner returns kube-log-runner and its flags in the command line of a service.
func findRunner(t *testing.T, spec nodespec.NodeSpec, name string) []string {
	t.Helper()
	for _, service := range spec.Services {
		words := host.SplitCommandLine(service.CommandLine)
		if child := nodespec.CommandUnderLogRunner(service.CommandLine); service.Name == name && child != nil {
			return slices.Clip(words[:len(words)-len(child)])
		}
	}
	t.Fatalf("%s is not under kube-log-runner", name)
	return nil
}

// printer is a guest program that prints numbered lines.
type printer struct {
	t         *testing.T
	host      *wine.Host
	directory string
	ended     chan error
	result    wine.Result
}

// startPrinter starts a program under kube-log-runner while another process holds the log of the service open.
func startPrinter(ctx context.Context, t *testing.T, h *wine.Host, service string, runner []string) *printer {
	t.Helper()
	runUntil(ctx, t, h, guestProgram+" hold "+nodespec.LogPath(service), "held")
	p := &printer{t: t, host: h, directory: `C:\tests\` + service, ended: make(chan error, 1)}
	go func() {
		var err error
		p.result, err = h.Exec(ctx, strings.Join(append(runner, guestProgram, "print", p.directory), " "))
		p.ended <- err
	}()
	return p
}

// lineNumbers returns the line numbers in a file of the program.
func (p *printer) lineNumbers(file string) []int {
	p.t.Helper()
	return readNumbers(readFile(p.t, p.host, p.directory+`\`+file))
}

// stop ends the program and returns the result of kube-log-runner.
func (p *printer) stop(ctx context.Context, t *testing.T) wine.Result {
	t.Helper()
	path, err := p.host.Path(p.directory + `\stop`)
	requireNoError(t, err)
	requireNoError(t, os.WriteFile(path, nil, 0o600))
	select {
	case err := <-p.ended:
		requireNoError(t, err)
	case <-ctx.Done():
		t.Fatal("kube-log-runner does not end")
	}
	return p.result
}

// readFile returns the content of a host file, or nothing if the file does not exist.
func readFile(t *testing.T, h *wine.Host, windows string) []byte {
	t.Helper()
	path, err := h.Path(windows)
	requireNoError(t, err)
	content, err := os.ReadFile(path)
	if !os.IsNotExist(err) {
		requireNoError(t, err)
	}
	return content
}

// readRotated returns the content of the only file to which a log was rotated.
func readRotated(t *testing.T, h *wine.Host, log string) []byte {
	t.Helper()
	path, err := h.Path(log)
	requireNoError(t, err)
	paths, err := filepath.Glob(strings.TrimSuffix(path, ".log") + "-*.log")
	requireNoError(t, err)
	if len(paths) != 1 {
		t.Fatalf("the rotated logs are %q", paths)
	}
	rotated, err := os.ReadFile(paths[0])
	requireNoError(t, err)
	return rotated
}

// readNumbers returns the numbers of complete lines. Wine appends in two steps: seek to the end, then write. If
// the log is truncated in between, zeros fill the file up to the former end.
func readNumbers(content []byte) (numbers []int) {
	content = bytes.TrimLeft(content, "\x00")
	for line := range bytes.Lines(content) {
		var number int
		if _, err := fmt.Sscanf(string(line), "line %d\n", &number); err == nil && bytes.HasSuffix(line, []byte("\n")) {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

func lastNumber(numbers []int) int {
	if len(numbers) == 0 {
		return 0
	}
	return numbers[len(numbers)-1]
}

// isRange reports whether the numbers are complete from first to last, in order.
func isRange(numbers []int, first, last int) bool {
	for i, number := range numbers {
		if number != first+i {
			return false
		}
	}
	return len(numbers) == last-first+1
}

func awaitState(ctx context.Context, t *testing.T, state string, reached func() bool) {
	t.Helper()
	for !reached() {
		select {
		case <-ctx.Done():
			t.Fatalf("it does not come to that: %s", state)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// buildGuest builds the program in the directory guest.
func buildGuest(t *testing.T) string {
	t.Helper()
	skipWithoutWine(t)
	path := filepath.Join(t.TempDir(), "guest.exe")
	if output, err := guestCommand(t.Context(), "build", "-buildvcs=false", "-o", path).CombinedOutput(); err != nil {
		t.Fatalf("build the guest's program: %v\n%s", err, output)
	}
	return path
}

// guestCommand returns a go command for the program in the directory guest.
func guestCommand(ctx context.Context, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", append(arguments, "./guest")...)
	command.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	return command
}
