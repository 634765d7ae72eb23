package windows

import (
	"errors"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestCheckConfig_InvalidServiceRejected(t *testing.T) {
	valid := host.ServiceConfig{
		Name: "kubelet", CommandLine: `C:\k\kubelet.exe --v=2`, StartType: host.StartAutomatic,
		Dependencies: []string{"containerd"}, Environment: []string{"A=", "B=c=d"},
	}
	if err := checkConfig(valid); err != nil {
		t.Fatalf("a service like those of a node: %v", err)
	}
	for name, c := range map[string]struct {
		change func(*host.ServiceConfig)
		want   error
	}{
		"without a name":         {func(c *host.ServiceConfig) { c.Name = "" }, errServiceName},
		"with a path for a name": {func(c *host.ServiceConfig) { c.Name = `a\b` }, errServiceName},
		"with a NUL in its name": {func(c *host.ServiceConfig) { c.Name = "a\x00b" }, errServiceName},
		"with too long a name": {func(c *host.ServiceConfig) {
			c.Name = strings.Repeat("a", 257)
		}, errServiceName},
		"without a program":    {func(c *host.ServiceConfig) { c.CommandLine = "  " }, errCommandLine},
		"without a start type": {func(c *host.ServiceConfig) { c.StartType = "" }, errServiceStart},
		"that depends on itself": {func(c *host.ServiceConfig) {
			c.Dependencies = []string{"Kubelet"}
		}, errSelfDependency},
		"with a nameless environment variable": {func(c *host.ServiceConfig) {
			c.Environment = []string{"=x"}
		}, errEnvironmentName},
	} {
		t.Run("a service "+name, func(t *testing.T) {
			config := valid
			c.change(&config)
			if err := checkConfig(config); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestStartTypes(t *testing.T) {
	t.Run("each start type is read as it was written", func(t *testing.T) {
		for _, start := range []host.StartType{host.StartAutomatic, host.StartManual, host.StartDisabled} {
			code, err := encodeStartType(start)
			if err != nil || decodeStartType(code) != start {
				t.Errorf("%s: got %s, %v", start, decodeStartType(code), err)
			}
		}
	})
	t.Run("what starts with Windows itself is automatic", func(t *testing.T) {
		for _, code := range []uint32{0, 1} {
			if decodeStartType(code) != host.StartAutomatic {
				t.Errorf("%d: got %s", code, decodeStartType(code))
			}
		}
	})
}

func TestServiceStates(t *testing.T) {
	for code, want := range map[uint32]host.ServiceState{
		1: host.ServiceStopped, 2: host.ServiceStartPending, 3: host.ServiceStopPending, 4: host.ServiceRunning,
		5: host.ServiceRunning, 6: host.ServiceRunning, 7: host.ServiceRunning,
	} {
		if got := decodeState(code); got != want {
			t.Errorf("state %d: got %s, want %s", code, got, want)
		}
	}
}

func TestServiceExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		win32, specific uint32
		want            int
	}{
		"a service that never ran has none":                 {1077, 0, 0},
		"a service that ended well has 0":                   {0, 0, 0},
		"a service tells a code of its own":                 {1066, 7, 7},
		"a service tells a code of Windows":                 {2, 9, 2},
		"a service whose process vanished says just that":   {1067, 0, 1067},
		"a code of its own beyond 31 bits stays what it is": {1066, 0xc0000005, 0xc0000005},
	} {
		t.Run(name, func(t *testing.T) {
			if got := exitCode(c.win32, c.specific); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestDisplayNames(t *testing.T) {
	t.Run("a service without one shows its name, and is read without one", func(t *testing.T) {
		shown := displayNameOf(host.ServiceConfig{Name: "kubelet"})
		if shown != "kubelet" || explicitDisplayName("kubelet", shown) != "" {
			t.Errorf("shown %q, read back %q", shown, explicitDisplayName("kubelet", shown))
		}
	})
	t.Run("a service with one keeps it", func(t *testing.T) {
		shown := displayNameOf(host.ServiceConfig{Name: "kubelet", DisplayName: "Kubelet"})
		if explicitDisplayName("kubelet", shown) != "Kubelet" {
			t.Errorf("shown %q", shown)
		}
	})
}
