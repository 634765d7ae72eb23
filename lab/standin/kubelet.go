package standin

import (
	"context"

	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/standin/kubelet"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

func (t *table) kubelet(ctx context.Context, p *node.Process, e payload.Executable) int {
	if !serviceFlag(p, hasServiceFlag(p.Args)) {
		return fail(p, "kubelet runs as a service without --windows-service")
	}
	runtime := t.runtimeOf(p.Machine)
	if t.Separate {
		runtime.adopt(p)
	}
	ticking := t.Clock
	if p.Clock != nil {
		ticking = p.Clock
	}
	return kubelet.Run(ctx, kubelet.Options{
		Process: p, Clock: ticking, Dial: t.Dial, Version: e.Version, Runtime: runtime, PodStopTime: t.PodStopTime,
		Unhealthy: e.Defect == payload.DefectUnhealthy, NotReady: e.Defect == payload.DefectNotReady,
	})
}
