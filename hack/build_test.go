// Package hack tests scripts of this directory.
package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakeGo records its arguments, and prints the output that a test has set.
const fakeGo = `#!/bin/bash
case $1 in
  list) printf '%b' "$STALE" ;;
  env) [[ $2 == GOHOSTOS ]] && echo darwin || echo arm64 ;;
  *) echo "in ${PWD#"$CHECKOUT"}: $* | $GOOS/$GOARCH cgo=$CGO_ENABLED fips=$GOFIPS140" >>"$CALLS"
    printf '%b' "$PRINTS" >&2
    exit "${STATUS:-0}" ;;
esac
`

// runBuild runs the script with the fake, and returns the recorded arguments and the output of the script.
func runBuild(t *testing.T, environment []string, programs ...string) (called, output string, err error) {
	t.Helper()
	dir := t.TempDir()
	checkout, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	calls := filepath.Join(dir, "calls")
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(fakeGo), 0o700); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), filepath.Join(checkout, "hack", "build"), programs...)
	command.Env = append(append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "CHECKOUT="+checkout, "CALLS="+calls, "GOARCH=", "GOFIPS140=",
		"FIPS=", "VERSION=12.0.0", "KUBERNETES_VERSION=v1.36.3", "BUILD_INTO="+filepath.Join(dir, "into")), environment...)
	if slices.Contains(environment, noKubernetes) {
		command.Env = slices.DeleteFunc(command.Env, func(variable string) bool { return strings.HasPrefix(variable, noKubernetes) })
	}
	out, err := command.CombinedOutput()
	noted, readErr := os.ReadFile(calls)
	if readErr != nil && !os.IsNotExist(readErr) {
		t.Fatal(readErr)
	}
	return strings.ReplaceAll(string(noted), dir, ""), string(out), err
}

// noKubernetes unsets the version.
const noKubernetes = "KUBERNETES_VERSION="

const (
	trimmed    = "-trimpath -ldflags -s -w -X main.version=12.0.0 "
	component  = "-X k8s.io/component-base/version.git"
	kubernetes = "-ldflags -s -w " + component + "Version=v1.36.3 " + component + "Major=1 " + component + "Minor=36 "
)

func TestBuild_CommandOfEachProgram(t *testing.T) {
	for _, c := range []struct{ program, module, output, how, platform string }{
		{"lab-controlplane", "/lab/controlplane", "lab-controlplane", kubernetes + ".", "linux/"},
		{"kubectl", "/lab/controlplane", "kubectl", kubernetes + "k8s.io/kubernetes/cmd/kubectl", "linux/"},
		{"wmco", "", "wmco", "-ldflags -X main.version=12.0.0 ./cmd/wmco", "linux/"},
		{"operator-linux-arm64", "", "operator/linux-arm64", trimmed + "./cmd/wmco", "linux/arm64"},
		{"wicd.exe", "", "wicd.exe", trimmed + "./cmd/wicd", "windows/amd64"},
		{"lab", "", "lab", "-ldflags -s -w ./lab/demo", "linux/"},
		{"lab-prometheus", "/lab/prometheus", "lab-prometheus", "-ldflags -s -w ./program", "linux/"},
		{"lab-prometheus-operator", "/lab/prometheusoperator", "lab-prometheus-operator", "-ldflags -s -w .", "linux/"},
		{"kubectl-windows", "", "kubectl-windows", trimmed + "./cmd/kubectl-windows", "darwin/arm64"},
		{"plugin-darwin-amd64", "", "plugin/darwin-amd64/kubectl-windows", trimmed + "./cmd/kubectl-windows", "darwin/amd64"},
		{"plugin-windows-arm64", "", "plugin/windows-arm64/kubectl-windows.exe", trimmed + "./cmd/kubectl-windows", "windows/arm64"},
		{"golangci-lint", "/tools", "tools/golangci-lint", "-ldflags -s -w github.com/golangci/golangci-lint/v2/cmd/golangci-lint", "linux/"},
		{"crd-ref-docs", "/tools", "tools/crd-ref-docs", "-ldflags -s -w github.com/elastic/crd-ref-docs", "linux/"},
	} {
		t.Run(c.program, func(t *testing.T) {
			want := "in " + c.module + ": build -v -o /into/" + c.output + " " + c.how + " | " + c.platform + " cgo=0 fips=\n"
			if called, output, err := runBuild(t, nil, c.program); err != nil || called != want {
				t.Errorf("got  %swant %s%v, %s", called, want, err, output)
			}
		})
	}
}

func TestBuild_FIPSForClusterProgramsOnly(t *testing.T) {
	for program, want := range map[string]bool{"wmco": true, "operator-linux-amd64": true, "wicd.exe": true, "lab": false,
		"lab-controlplane": false, "plugin-linux-amd64": false, "kubectl-windows": false, "gotestsum": false} {
		called, output, err := runBuild(t, []string{"FIPS=1"}, program)
		if got := strings.Contains(called, "fips=v1.0.0\n"); err != nil || got != want {
			t.Errorf("%s is built in FIPS mode: %t, %v, %s", program, got, err, output)
		}
	}
}

func TestBuild_UnknownProgramRejected(t *testing.T) {
	if called, output, err := runBuild(t, nil, "wmcp"); err == nil || called != "" || !strings.Contains(output, "wmcp") {
		t.Errorf("go is called with %q, %v, %s", called, err, output)
	}
}

func TestBuild_ProgressPrintedEveryTwentyPercent(t *testing.T) {
	_, output, err := runBuild(t, []string{"PRINTS=" + strings.Repeat("go: downloading example.com/a v1.0.0\n", 9) +
		strings.Repeat("example.com/a/b\n", 100), "STALE=" + strings.Repeat("x\n", 100)}, "wmco")
	want := "  wmco: fetching Go modules\n  wmco: 0 % compiled\n  wmco: 20 % compiled\n  wmco: 40 % compiled\n  wmco: 60 % compiled\n" +
		"  wmco: 80 % compiled\n  wmco: 100 % compiled\nbuilt wmco\n"
	if err != nil || output != want {
		t.Errorf("%v, it prints:\n%s", err, output)
	}
}

func TestBuild_NothingPrintedIfUpToDate(t *testing.T) {
	if _, output, err := runBuild(t, nil, "wmco", "lab"); err != nil || output != "" {
		t.Errorf("%v, it prints:\n%s", err, output)
	}
}

func TestBuild_CompilerErrorsPrintedAndStopBuild(t *testing.T) {
	called, output, err := runBuild(t, []string{"PRINTS=a\n# b\nb.go:1:2: undefined: x\n", "STATUS=1"}, "wmco", "lab")
	if err == nil || strings.Contains(called, "lab") || !strings.Contains(output, "# b\nb.go:1:2: undefined: x\n") ||
		strings.Contains(output, "built") {
		t.Errorf("%v, it prints:\n%s", err, output)
	}
}

func TestBuild_OnlyKubernetesProgramsNeedKubernetesVersion(t *testing.T) {
	for program, needed := range map[string]bool{"wmco": false, "operator-linux-amd64": false, "wicd.exe": false, "lab": false, "golangci-lint": false,
		"lab-controlplane": true, "kubectl": true} {
		called, output, err := runBuild(t, []string{noKubernetes}, program)
		if needed != (err != nil) || needed != (called == "") || needed != strings.Contains(output, "KUBERNETES_VERSION") {
			t.Errorf("%s is built with %q, %v, %s", program, called, err, output)
		}
	}
}
