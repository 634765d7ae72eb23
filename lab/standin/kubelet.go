package standin

import (
	"context"

	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/standin/kubelet"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

func (t *table) runKubelet(ctx context.Context, p *node.Process, e payload.Executable) int {
	if !isServiceFlagValid(p, hasServiceFlag(p.Args)) {
		return reportFailure(p, "kubelet runs as a service without --windows-service")
	}
	runtime := t.runtimeOf(p.Machine)
	if t.Separate {
		runtime.adoptProcess(p)
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
