package components_test

import (
	"io/fs"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/lab/wine"
)

// The types into which win-overlay decodes the configuration exist on Windows only. R-085
func TestCNIConfig_AcceptedByWinOverlay(t *testing.T) {
	ctx := requireWine(t)
	files := map[string]string{`C:\tests\payload\cni\cni.exe`: buildTests(ctx, t, "cni", ".")}
	golden := filepath.Join(repository, "internal/nodespec/testdata")
	requireNoError(t, filepath.WalkDir(golden, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "cni.conf" {
			relative, _ := filepath.Rel(repository, path) // both are relative to the same directory
			files[`C:\tests\`+strings.ReplaceAll(relative, "/", `\`)] = path
		}
		return err
	}))
	h := start(ctx, t, wine.Options{Name: "CNI", Address: netip.MustParseAddr("10.2.0.1"), Files: files})
	result, err := h.Exec(ctx, `cd /d C:\tests\payload\cni && cni.exe -test.v`)
	requireNoError(t, err)
	if result.ExitCode != 0 || !strings.Contains(result.Stdout, "ok\n") && !strings.Contains(result.Stdout, "PASS") {
		t.Errorf("%s%s", result.Stdout, result.Stderr)
	}
	if !strings.Contains(result.Stdout, "--- PASS: TestPolicies_PassedToWindows") {
		t.Errorf("the policies were not read: %s", result.Stdout)
	}
}
