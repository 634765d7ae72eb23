package components_test

import (
	"net/netip"
	"strings"
	"testing"

	labpayload "github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/wine"
)

//
func TestKubelet_LabelHasBuildOfRuntimeClasses(t *testing.T) {
	ctx := requireWine(t)
	program := buildTests(ctx, t, "kubernetes-"+labpayload.Kubernetes, "./labels")
	for want, c := range map[string]struct {
		address string
		system  wine.Identity
	}{
		"10.0.20348": {"10.2.0.5", wine.WindowsServer2022()},
		"10.0.17763": {"10.2.0.6", wine.WindowsServer2019()},
	} {
		t.Run(want, func(t *testing.T) {
			h := start(ctx, t, wine.Options{
				Name: "LABELS", Address: netip.MustParseAddr(c.address), System: c.system,
				Files: map[string]string{`C:\tests\labels.exe`: program},
			})
			result, err := h.Exec(ctx, `C:\tests\labels.exe -test.v`)
			requireNoError(t, err)
			if result.ExitCode != 0 || !strings.Contains(result.Stdout, "windows-build="+want) {
				t.Errorf("%s%s", result.Stdout, result.Stderr)
			}
		})
	}
}
