package contract_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"testing"
)

// Windows-only tests run under Wine here, and nowhere else.
func TestPackages_WindowsTestsPassUnderWine(t *testing.T) {
	ctx := requireWine(t)
	packages := onlyForWindows(ctx, t)
	if !slices.Contains(packages, "github.com/windows-machine-config/wmco/internal/host/windows") {
		t.Fatalf("found %v, without internal/host/windows", packages)
	}
	for _, name := range packages {
		t.Run(name, func(t *testing.T) {
			h := bootHost(ctx, t, "tests", "10.87.0.6", map[string]string{program: buildTests(ctx, t, name)})
			run(ctx, t, h, program+" -test.v")
		})
	}
}

// onlyForWindows returns the product packages that have Windows-only test files.
func onlyForWindows(ctx context.Context, t *testing.T) []string {
	t.Helper()
	arguments := append([]string{"list", "-json=ImportPath,TestGoFiles,XTestGoFiles"}, productPackages...)
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = root
	elsewhere := testFiles(t, command)
	var packages []string
	for name, files := range testFiles(t, forWindows(ctx, arguments...)) {
		if slices.ContainsFunc(files, func(file string) bool { return !slices.Contains(elsewhere[name], file) }) {
			packages = append(packages, name)
		}
	}
	slices.Sort(packages)
	return packages
}

// testFiles returns the test files of each package in the output of `go list`.
func testFiles(t *testing.T, list *exec.Cmd) map[string][]string {
	t.Helper()
	output, err := list.Output()
	if err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	files := map[string][]string{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var one struct {
			ImportPath                string
			TestGoFiles, XTestGoFiles []string
		}
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatalf("%s: %v", list, err)
		}
		files[one.ImportPath] = slices.Concat(one.TestGoFiles, one.XTestGoFiles)
	}
}

// The simulated components have tests, too. Some of these need a restart between two halves, the following do not.
func TestStandIns_TestsPassUnderWine(t *testing.T) {
	ctx := requireWine(t)
	h := bootHost(ctx, t, "standins", "10.87.0.7", map[string]string{program: buildTests(ctx, t, "./lab/wine/standin")})
	for _, name := range []string{"TestFeatures", "TestFirewall", "TestSymbolicLinks", "TestAccessLists"} {
		t.Run(name, func(t *testing.T) { run(ctx, t, h, program+" -test.v -test.run=^"+name+"$") })
	}
}
