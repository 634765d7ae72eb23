package fake

import (
	"context"
	"testing"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/hosttest"
)

func TestHostContract(t *testing.T) {
	hosttest.TestHost(t, func(t *testing.T) (host.Host, hosttest.Capabilities) {
		hosts := make(chan host.Host, 1)
		known := programs{
			"service": idle,
			"crash":   func(context.Context, *Process) int { return 7 },
			"test":    func(ctx context.Context, p *Process) int { hosts <- p.Host; <-ctx.Done(); return 0 },
		}
		r := boot(t, known, func(o *Options) { o.Clock = clock.RealClock{} })
		// The process must live until the clean-up of the suite is done.
		go func() { _, _ = r.Exec(context.Background(), ExecRequest{Path: `C:\test.exe`}) }()
		return <-hosts, hosttest.Capabilities{
			ServiceProgram: []string{`C:\service.exe`}, CrashingProgram: []string{`C:\crash.exe`},
			Features: true, Firewall: true, Links: true, Access: true, FilesInUse: true, Dependencies: true, Recovery: true,
		}
	})
}
