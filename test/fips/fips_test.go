// Package fips verifies that operator and agent build and work with Go's FIPS 140-3 module, as built by `make build
// FIPS=1`.
package fips

import (
	"bytes"
	"context"
	"crypto/fips140"
	"debug/buildinfo"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

const (
	root = "../.."
	// inFIPSMode is set in the child process of a test that reruns itself.
	inFIPSMode = "WMCO_TEST_IN_FIPS_MODE"
)

var shared = clustertest.New(cluster.Options{Profile: cluster.OpenShift, APIIntURL: "https://127.0.0.1"})

func TestMain(m *testing.M) { os.Exit(e2e.Main(m, shared.Stop)) }

// buildProgram builds a program like the Makefile with FIPS=1, and checks that Go reports the FIPS module.
func buildProgram(t *testing.T, target string) string {
	t.Helper()
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), "make", "--no-print-directory", target, "FIPS=1")
	command.Dir = root
	command.Env = append(os.Environ(), "BUILD_INTO="+dir)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("make %s: %v:\n%s", target, err, out)
	}
	path := filepath.Join(dir, filepath.Base(target))
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	if !strings.HasPrefix(settings["GOFIPS140"], "v1.0.0") || !strings.Contains(settings["DefaultGODEBUG"], "fips140=on") {
		t.Fatalf("%s was built with GOFIPS140=%q, DefaultGODEBUG=%q", target, settings["GOFIPS140"],
			settings["DefaultGODEBUG"])
	}
	return path
}

func TestFIPS_OperatorBuildsAndStarts(t *testing.T) {
	program := buildProgram(t, "build/wmco")
	version, err := testenv.OperatorVersion(t.Context(), program)
	if err != nil || !strings.HasPrefix(version, "12.") {
		t.Fatalf("wmco version says %q, error %v", version, err)
	}
	r := e2e.Boot(t, testenv.Options{Cluster: shared.Cluster(t)})
	config, err := r.InstallOperator(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := r.Cluster().WriteKubeconfig(kubeconfig, config); err != nil {
		t.Fatal(err)
	}
	probes := freeAddress(t)
	var log bytes.Buffer
	operator := exec.CommandContext(t.Context(), program, "--payload-dir="+r.PayloadDir(),
		"--health-probe-bind-address="+probes, "--metrics-bind-address="+freeAddress(t))
	operator.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "WATCH_NAMESPACE="+r.Namespace())
	operator.Stdout, operator.Stderr = &log, &log
	if err := operator.Start(); err != nil {
		t.Fatal(err)
	}
	ready := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, e2e.WaitTimeout, true,
		func(ctx context.Context) (bool, error) {
			return get(ctx, "http://"+probes+"/readyz") == http.StatusOK, nil
		})
	if err := operator.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := operator.Wait(); err != nil || ready != nil {
		t.Errorf("ready: %v, end: %v; it said:\n%s", ready, err, log.String())
	}
	if !strings.Contains(log.String(), `"fips140":"v1.0.0`) {
		t.Errorf("the log does not name the module:\n%s", log.String())
	}
}

func TestFIPS_AgentBuilds(t *testing.T) { buildProgram(t, "build/wicd.exe") }

// All operations on the path from a host to a node work in FIPS mode: TLS to the API server, SSH to the host, keys
// and certificates.
func TestFIPS_HostBecomesNode(t *testing.T) {
	if os.Getenv(inFIPSMode) == "" {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		command.Env = append(os.Environ(), inFIPSMode+"=1", "GODEBUG=fips140=on")
		out, err := command.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
			t.Errorf("%v:\n%s", err, out)
		}
		return
	}
	if !fips140.Enabled() {
		t.Fatal("FIPS mode is off")
	}
	r := e2e.Boot(t, testenv.Options{Cluster: shared.Cluster(t), Hosts: testenv.Hosts(1)})
	e2e.Install(t, r)
	o, err := r.RunOperator()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.ListHosts(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), e2e.WaitTimeout)
	defer cancel()
	if err := r.WaitReady(ctx); err != nil {
		t.Error(err)
	}
	if err := o.Stop(); err != nil {
		t.Error(err)
	}
}

// get returns the status of a page, or 0 without a response.
func get(ctx context.Context, url string) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body) // only the status matters
	return response.StatusCode
}

// freeAddress returns an unused address. It avoids 127.0.0.1, where all other programs allocate ports.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.77.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return fmt.Sprint(listener.Addr())
}
