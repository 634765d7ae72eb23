//go:build windows

package windows

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/windows/registry"

	"github.com/windows-machine-config/wmco/internal/host"
)

// labKey contains the settings of the lab's simulated parts of Windows (lab/wine/standin).
const labKey = `SOFTWARE\wmco-lab`

// requireSimulatedParts skips a test on machines without the simulated parts, because Windows itself does not fail on
// request.
func requireSimulatedParts(t *testing.T) {
	t.Helper()
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, labKey, registry.QUERY_VALUE)
	if err != nil {
		t.Skipf("NOT SHOWN HERE: this machine has no stand-ins that fail on request (%v)", err)
	}
	requireNoError(t, key.Close())
}

// setFault sets faults of a simulated part until the returned function or the end of the test
// (lab/wine/standin/c/faults.h).
func setFault(t *testing.T, part string, values map[string]any) (mend func()) {
	t.Helper()
	path := labKey + `\faults\` + part
	mend = func() { _ = registry.DeleteKey(registry.LOCAL_MACHINE, path) } // the fault may already be removed
	mend()
	t.Cleanup(mend)
	key, _, err := registry.CreateKey(registry.LOCAL_MACHINE, path, registry.SET_VALUE)
	requireNoError(t, err)
	for name, value := range values {
		switch value := value.(type) {
		case int:
			err = key.SetDWordValue(name, uint32(value))
		case string:
			err = key.SetStringValue(name, value)
		}
		requireNoError(t, err)
	}
	requireNoError(t, key.Close())
	return mend
}

// startDefender simulates an active Microsoft Defender Antivirus until the end of the test: a service and a program
// with the same names. The simulated WMI provides the exclusions.
func startDefender(t *testing.T) {
	t.Helper()
	self, err := executablePath()
	requireNoError(t, err)
	content, err := os.ReadFile(self)
	requireNoError(t, err)
	program := filepath.Join(t.TempDir(), host.DefenderProgram)
	requireNoError(t, os.WriteFile(program, content, 0o700))
	requireNoError(t, services{}.Configure(t.Context(), host.ServiceConfig{
		Name: host.DefenderService, DisplayName: "Microsoft Defender Antivirus Service",
		CommandLine: host.CommandLine(program, programFlag+"idle"), StartType: host.StartManual,
	}))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = services{}.Stop(ctx, host.DefenderService)
		_ = services{}.Delete(ctx, host.DefenderService)
	})
	requireNoError(t, services{}.Start(t.Context(), host.DefenderService))
	if active, err := (antivirus{}).IsActive(t.Context()); err != nil || !active {
		t.Fatalf("Defender is at work: %t, error %v", active, err)
	}
}

// enableHNS enables the simulated Host Networking Service until the end of the test.
func enableHNS(t *testing.T) {
	t.Helper()
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, labKey+`\features\Containers`,
		registry.QUERY_VALUE|registry.SET_VALUE)
	requireNoError(t, err)
	before, _, err := key.GetIntegerValue("State")
	requireNoError(t, err)
	const installed = 4
	requireNoError(t, key.SetDWordValue("State", installed))
	t.Cleanup(func() {
		_ = key.SetDWordValue("State", uint32(before))
		_ = key.Close()
	})
}

func hexCode(code int) string { return fmt.Sprintf("0x%08x", code) }

// faultNumber returns a number of a fault, which the simulated parts decrement.
func faultNumber(t *testing.T, part, name string) uint64 {
	t.Helper()
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, labKey+`\faults\`+part, registry.QUERY_VALUE)
	requireNoError(t, err)
	defer key.Close()
	number, _, err := key.GetIntegerValue(name)
	requireNoError(t, err)
	return number
}
