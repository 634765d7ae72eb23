package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// options are what the Makefile says of all programs.
type options struct {
	version, kubernetes, into string
	fips                      bool
}

// program is an executable, and what it is built from.
type program struct {
	name, output string
	module       string // directory of the Go module
	source       string // package
	goos         string
	goarch       string // none: that of this machine
	product      bool   // what a cluster runs
	flags        func(options) []string
}

// programs are all that can be built.
var programs = []program{
	{name: "lab-controlplane", output: "lab-controlplane", module: "lab/controlplane", source: ".", goos: "linux",
		flags: kubernetesFlags},
	{name: "wmco", output: "wmco", module: ".", source: "./cmd/wmco", goos: "linux", product: true,
		flags: func(o options) []string {
			return []string{"-ldflags", "-X main.version=" + o.version}
		}},
	{name: "lab", output: "lab", module: ".", source: "./lab/demo", goos: "linux",
		flags: func(options) []string { return []string{"-ldflags", "-s -w"} }}, // linked in less time
	{name: "lab-prometheus", output: "lab-prometheus", module: "lab/prometheus", source: "./program", goos: "linux",
		flags: func(options) []string { return []string{"-ldflags", "-s -w"} }},
	{name: "lab-prometheus-operator", output: "lab-prometheus-operator", module: "lab/prometheusoperator", source: ".",
		goos: "linux", flags: func(options) []string { return []string{"-ldflags", "-s -w"} }},
	imageOperator("amd64"),
	imageOperator("arm64"),
	{name: "wicd.exe", output: "wicd.exe", module: ".", source: "./cmd/wicd", goos: "windows", goarch: "amd64",
		product: true,
		flags:   trimmed},
	{name: "kubectl-windows", output: "kubectl-windows", module: ".", source: "./cmd/kubectl-windows", goos: runtime.GOOS,
		goarch: runtime.GOARCH, flags: trimmed},
	plugin("linux", "amd64"), plugin("linux", "arm64"), plugin("darwin", "amd64"), plugin("darwin", "arm64"),
	plugin("windows", "amd64"), plugin("windows", "arm64"),
	{name: "kubectl", output: "kubectl", module: "lab/controlplane", source: "k8s.io/kubernetes/cmd/kubectl",
		goos: "linux", flags: kubernetesFlags},
	tool("controller-gen", "sigs.k8s.io/controller-tools/cmd/controller-gen"),
	tool("crd-ref-docs", "github.com/elastic/crd-ref-docs"),
	tool("golangci-lint", "github.com/golangci/golangci-lint/v2/cmd/golangci-lint"),
	tool("govulncheck", "golang.org/x/vuln/cmd/govulncheck"),
	tool("gotestsum", "gotest.tools/gotestsum"),
}

// tool returns a program of the module tools, which pins its version.
func tool(name, source string) program {
	return program{name: name, output: "tools/" + name, module: "tools", source: source, goos: "linux"}
}

// imageOperator returns the operator as an image has it: the same bytes from a checkout in any folder, for which all of
// it is compiled once more.
func imageOperator(goarch string) program {
	return program{name: "operator-linux-" + goarch, output: "operator/linux-" + goarch, module: ".", source: "./cmd/wmco",
		goos: "linux", goarch: goarch, product: true, flags: trimmed}
}

// plugin returns the plugin of kubectl for a platform, as a release has it.
func plugin(goos, goarch string) program {
	p := program{name: "plugin-" + goos + "-" + goarch, output: "plugin/" + goos + "-" + goarch + "/kubectl-windows", module: ".",
		source: "./cmd/kubectl-windows", goos: goos, goarch: goarch, flags: trimmed}
	if goos == "windows" {
		p.output += ".exe"
	}
	return p
}

// trimmed are flags for programs without symbols, and without the paths of this machine.
func trimmed(o options) []string {
	return []string{"-trimpath", "-ldflags", "-s -w -X main.version=" + o.version}
}

// kubernetesFlags give Kubernetes' programs their version; without it they say v0.0.0-master.
func kubernetesFlags(o options) []string {
	const in = " -X k8s.io/component-base/version."
	parts := append(strings.Split(strings.TrimPrefix(o.kubernetes, "v"), "."), "", "")
	return []string{"-ldflags", "-s -w" + in + "gitVersion=" + o.kubernetes + in + "gitMajor=" + parts[0] + in +
		"gitMinor=" + parts[1]}
}

func names() []string {
	all := make([]string, len(programs))
	for i, p := range programs {
		all[i] = p.name
	}
	return all
}

// choose returns the named programs in the order of the table.
func choose(wanted []string) ([]program, error) {
	var chosen []program
	for _, p := range programs {
		if slices.Contains(wanted, p.name) {
			chosen = append(chosen, p)
		}
	}
	for _, name := range wanted {
		if !slices.Contains(names(), name) {
			return nil, fmt.Errorf("there is no program %q: the programs are %s", name, strings.Join(names(), ", "))
		}
	}
	return chosen, nil
}

// platform is what packages are compiled for.
func (p program) platform() string { return p.goos + "/" + p.goarch }

// environment returns the environment of go, for this program. Nothing needs a C compiler.
func (p program) environment(o options) []string {
	environment := os.Environ()
	if o.fips && p.product {
		environment = append(environment, "GOFIPS140=v1.0.0")
	}
	if p.goarch != "" {
		environment = append(environment, "GOARCH="+p.goarch)
	}
	return append(environment, "CGO_ENABLED=0", "GOOS="+p.goos)
}

// build builds the program, and reports to progress what is compiled for it.
func (p program) build(ctx context.Context, o options, progress *progress) error {
	output, err := filepath.Abs(filepath.Join(o.into, p.output))
	if err != nil {
		return err
	}
	arguments := []string{"build", "-v", "-o", output}
	if p.flags != nil {
		arguments = append(arguments, p.flags(o)...)
	}
	command := exec.CommandContext(ctx, "go", append(arguments, p.source)...)
	command.Dir, command.Env = p.module, p.environment(o)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	reader, writer := io.Pipe()
	command.Stdout, command.Stderr = writer, writer
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			progress.line(p.platform(), lines.Text())
		}
	}()
	err = command.Run()
	_ = writer.Close()
	<-done
	return err
}
