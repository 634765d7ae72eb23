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
	return kubelet.Run(ctx, kubelet.Options{
		Process: p, Clock: t.Clock, Dial: t.Dial, Version: e.Version, Runtime: runtime, PodStopTime: t.PodStopTime,
		Unhealthy: e.Defect == payload.DefectUnhealthy, NotReady: e.Defect == payload.DefectNotReady,
	})
}
