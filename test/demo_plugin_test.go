package test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/plugin"
	"github.com/windows-machine-config/wmco/lab/linuxns"
)

// The kubectl windows commands of the README work in the demo. Some run in the operator's Pod, through the API
// server.
func TestDemo_KubectlWindowsWorks(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	outputFile := filepath.Join(t.TempDir(), "demo.log")
	output, err := os.Create(outputFile)
	requireNoError(t, err)
	defer output.Close()
	demo := exec.CommandContext(ctx, "../build/lab", "demo", "--hosts", "1", "--machines", "0", "--operator-log", filepath.Join(t.TempDir(), "operator.log"))
	demo.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	demo.Stdout, demo.Stderr = output, output
	requireNoError(t, demo.Start())
	ended := make(chan error, 1)
	go func() { ended <- demo.Wait() }()
	out := func() string {
		data, err := os.ReadFile(outputFile)
		requireNoError(t, err)
		return string(data)
	}
	named := regexp.MustCompile(`export KUBECONFIG=(\S+)`)
	for named.FindStringSubmatch(out()) == nil {
		select {
		case err := <-ended:
			if strings.Contains(out(), linuxns.ErrUnavailable.Error()) && os.Getuid() != 0 {
				t.Skipf("SKIPPED: the demo: %s", out())
			}
			t.Fatalf("the demo has ended (is it built? run make build): %v\n%s", err, out())
		case <-time.After(200 * time.Millisecond):
		}
	}
	kubeconfig := named.FindStringSubmatch(out())[1]
	windows := func(wants string, arguments ...string) {
		t.Helper()
		var out, errOut bytes.Buffer // one buffer cannot collect two streams
		root := plugin.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}, clock.RealClock{}, "12.0.0")
		root.SetArgs(append(arguments, "--kubeconfig="+kubeconfig))
		if err := root.ExecuteContext(ctx); err != nil || !strings.Contains(out.String()+errOut.String(), wants) {
			t.Errorf("kubectl windows %s: %v, without %q:\n%s", strings.Join(arguments, " "), err, wants, out.String()+errOut.String())
		}
	}
	windows("Ready", "status")
	windows("no change", "plan", "--all")
	windows("The host presents the pinned key", "diagnose", "10.9.0.1")
	windows("not listed", "diagnose", "10.9.0.2", "--username", "Administrator")
	windows("files of 1 host", "gather", "--file", filepath.Join(t.TempDir(), "gathered.tar.gz"))

	requireNoError(t, demo.Process.Signal(os.Interrupt))
	if err := <-ended; err != nil {
		t.Errorf("the demo ended with %v:\n%s", err, out())
	}
}
