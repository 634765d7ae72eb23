// Package components_test runs programs of the payload under Wine, with the files that the operator writes for them.
package components_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/lab/linuxns"
	labpayload "github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/wine"
)

const repository = "../../.."

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

// testMain runs the tests in a separate network. The Debian archive and the Go modules are unreachable in that
// network, so hosts and programs are prepared before.
func testMain(m *testing.M) int {
	if wine.Available() != nil {
		return m.Run() // each test reports the skip
	}
	ctx := context.Background()
	if _, err := wine.Prepare(ctx, ""); err != nil {
		fmt.Println(err)
		return 1
	}
	kubernetes := "kubernetes-" + labpayload.Kubernetes
	for _, each := range []struct {
		module   string
		packages []string
	}{{"containerd", []string{"tool"}}, {kubernetes, []string{"tool"}}, {kubernetes, []string{"-test", "./labels"}},
		{"cni", []string{"-test", "."}}, {"windows_exporter", []string{"tool"}},
		{"kube-log-runner", []string{"tool"}}} {
		if output, err := forWindows(ctx, each.module, append([]string{"list", "-deps"},
			each.packages...)...).CombinedOutput(); err != nil {
			fmt.Printf("find what payload/%s is made of: %v\n%s\n", each.module, err, output)
			return 1
		}
	}
	if output, err := guestCommand(ctx, "list", "-deps").CombinedOutput(); err != nil {
		fmt.Printf("find what the guest's program is made of: %v\n%s\n", err, output)
		return 1
	}
	if output, err := inPrometheus(ctx, "list", "-deps", "./scrape").CombinedOutput(); err != nil {
		fmt.Printf("find what the scraper is made of: %v\n%s\n", err, output)
		return 1
	}
	return linuxns.RunTests(linuxns.Config{GracePeriod: 30 * time.Second}, m.Run)
}

// requireWine skips the test on machines that cannot run Wine hosts.
func requireWine(t *testing.T) context.Context {
	t.Helper()
	skipWithoutWine(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func skipWithoutWine(t *testing.T) {
	t.Helper()
	if err := wine.Available(); err != nil {
		t.Skipf("SKIPPED: nothing was run under Wine: %v", err)
	}
}

// forWindows returns a go command in a payload module, with the environment of `make payload`, so that both
// share the build cache.
func forWindows(ctx context.Context, module string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = filepath.Join(repository, "payload", module)
	command.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "GOAMD64=v1", "CGO_ENABLED=0", "GOWORK=off",
		"GOFLAGS=-mod=readonly",
		"GOEXPERIMENT=", "GOFIPS140=off", "GODEBUG=")
	return command
}

// inPrometheus returns a go command in the module that depends on Prometheus.
func inPrometheus(ctx context.Context, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = filepath.Join(repository, "lab", "prometheus")
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	return command
}

// buildTests builds the tests of a package in a payload module and returns the path of the executable.
func buildTests(ctx context.Context, t *testing.T, module, source string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), module+".exe")
	command := forWindows(ctx, module, "test", "-trimpath", "-o", path, "-c", source)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command.Args, " "), err, output)
	}
	return path
}

// buildExecutable builds a payload executable with the same program, table and directory as `make payload`, and returns
// the path. There is no timeout: without a build cache, the kubelet needs minutes.
func buildExecutable(t *testing.T, component, executable string) string {
	t.Helper()
	skipWithoutWine(t)
	command := exec.CommandContext(t.Context(), "go", "run", "./hack/payload", "-executables", executable, "-minors", labpayload.Kubernetes, "-wine", "")
	command.Dir = repository
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", executable, err, output)
	}
	directory := filepath.Join(repository, "build/payload-bin", component)
	if component == "kubelet" || component == "kube-proxy" {
		directory = filepath.Join(directory, labpayload.Kubernetes)
	}
	path, err := filepath.Abs(filepath.Join(directory, executable))
	requireNoError(t, err)
	return path
}

// runUntil starts a program and returns the output up to a line that contains the text. The program ends with
// the test.
func runUntil(ctx context.Context, t *testing.T, h *wine.Host, line, text string) []string {
	t.Helper()
	client, err := h.Connect(ctx)
	requireNoError(t, err)
	session, err := client.NewSession()
	requireNoError(t, err)
	reader, writer := io.Pipe()
	session.Stdout, session.Stderr = writer, writer
	requireNoError(t, session.Start(line))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = writer.CloseWithError(session.Wait()) // the test ends it
	}()
	stop := context.AfterFunc(ctx, func() { _ = client.Close() })
	t.Cleanup(func() {
		stop()
		_ = client.Close()
		<-ended
	})
	var output []string
	lines := bufio.NewScanner(reader)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		output = append(output, lines.Text())
		if strings.Contains(lines.Text(), text) {
			go func() { _, _ = io.Copy(io.Discard, reader) }() // until the program ends
			return output
		}
	}
	_ = reader.Close()
	t.Fatalf("%s\ndid not say %q: %v\n%s", line, text, lines.Err(), strings.Join(output, "\n"))
	return nil
}

func start(ctx context.Context, t *testing.T, options wine.Options) *wine.Host {
	t.Helper()
	base, err := wine.Prepare(ctx, "")
	requireNoError(t, err)
	options.Base = base
	h, err := wine.New(ctx, options)
	requireNoError(t, err)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	requireNoError(t, h.Start(ctx))
	return h
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
