package execute

import (
	"context"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// destroyLayers unmounts and deletes the layers in a directory that is about to be removed. Remaining layers
// are removed like other files, or after a restart: a layer must not prevent the restoration of the host.
func (e *Executor) destroyLayers(ctx context.Context, path string) {
	if !nodespec.IsWithin(nodespec.LayersDirectory, path) {
		return
	}
	layers, err := hostutil.ListDirectory(ctx, e.Host.Files, nodespec.LayersDirectory)
	if err != nil {
		e.recordWarning(err.Error())
		return
	}
	began, left, first := e.Clock.Now(), 0, ""
	for i, layer := range layers {
		if e.Clock.Since(began) >= timeouts.AllLayersTimeout || ctx.Err() != nil {
			left += len(layers) - i
			break
		}
		e.reportProgress("deleting layer %d of %d", i+1, len(layers))
		err := e.withProgress(ctx, timeouts.LayerTimeout, "deleting layer "+layer.Name, func(ctx context.Context) error {
			return e.Host.Layers.Destroy(ctx, layer.Path)
		})
		if err != nil {
			if left++; first == "" {
				first = "; first error: " + err.Error()
			}
		}
	}
	if left > 0 {
		e.recordWarning(fmt.Sprintf("Windows did not delete %d of %d container layers%s", left, len(layers), first))
	}
}
