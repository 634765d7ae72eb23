package execute

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// endPods stops all pods through the container runtime. A pod that does not stop must not block the removal of
// the host. The step names the first such pod, and all shims are killed with the other processes.
func (e *Executor) endPods(ctx context.Context, o plan.EndPods) error {
	var pods []host.Sandbox
	err := e.withProgress(ctx, timeouts.PodTimeout, "listing the pods of "+o.Service, func(ctx context.Context) (err error) {
		pods, err = e.Host.Sandboxes.List(ctx, o.Endpoint)
		return err
	})
	if err != nil {
		return e.warnAboutPods(ctx,
			fmt.Sprintf("%s does not list its pods, so the removal continues without stopping them: %v", o.Service, err))
	}
	began, left, first := e.Clock.Now(), 0, ""
	for i, pod := range pods {
		if e.Clock.Since(began) >= timeouts.AllPodsTimeout {
			left += len(pods) - i
			break
		}
		name := pod.Namespace + "/" + pod.Name
		e.reportProgress("stopping pod %s, %d of %d", name, i+1, len(pods))
		err := e.withProgress(ctx, timeouts.PodTimeout, "stopping pod "+name, func(ctx context.Context) error {
			return e.Host.Sandboxes.End(ctx, o.Endpoint, pod.ID)
		})
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			if left++; first == "" {
				first = fmt.Sprintf(" (first: %s: %v)", name, err)
			}
		}
	}
	if left > 0 {
		return e.warnAboutPods(ctx,
			fmt.Sprintf("%d of %d pods did not stop%s; the removal continues without waiting for them", left, len(pods), first))
	}
	return nil
}

// warnAboutPods advises of pods that were not stopped, unless the command was interrupted.
func (e *Executor) warnAboutPods(ctx context.Context, advice string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e.recordWarning(advice)
	return nil
}

// postponeIfMounted postpones the removal of a directory until after a restart if container files in it are in
// use.
func (e *Executor) postponeIfMounted(ctx context.Context, path string, err error) error {
	// Windows reports a mounted disk as in use, and may deny access to files held by its filters.
	if !errors.Is(err, host.ErrInUse) && !errors.Is(err, fs.ErrPermission) || ctx.Err() != nil {
		return err
	}
	ledger, _, readErr := e.Records.Ledger(ctx)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	ledger, waits := ledger.RecordInUse(path, e.Facts.System.BootID)
	if !waits {
		return err
	}
	if noteErr := e.Records.SetLedger(ctx, ledger); noteErr != nil {
		return errors.Join(err, noteErr)
	}
	e.recordWarning("files of containers are in use until the host restarts; the removal continues after the restart: " + err.Error())
	return nil
}
