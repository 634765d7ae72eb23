package standin

import (
	"context"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/standin/kubelet"
)

func (t *table) kubelet(ctx context.Context, p *fake.Process, e payload.Executable) int {
	if !serviceFlag(p, hasServiceFlag(p.Args)) {
		return fail(p, "kubelet runs as a service without --windows-service")
	}
	return kubelet.Run(ctx, kubelet.Options{
		Process: p, Clock: t.Clock, Dial: t.Dial, Version: e.Version, Runtime: t.runtimeOf(p.Machine), PodStopTime: t.PodStopTime,
	})
}
