//go:build windows

package windows

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/Microsoft/hcsshim"

	"github.com/windows-machine-config/wmco/internal/host"
)

// layers implements host.Layers with the vmcompute.dll calls of containerd's snapshotter, plugins/snapshots/windows
// of containerd.
type layers struct{}

func (layers) Destroy(ctx context.Context, folder string) error {
	_, err := files{}.Stat(ctx, folder)
	if errors.Is(err, host.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = runDetached(ctx, func() error {
		info, id := hcsshim.DriverInfo{HomeDir: filepath.Dir(folder)}, filepath.Base(folder)
		// Both calls fail for a layer that is not mounted.
		unprepared, deactivated := hcsshim.UnprepareLayer(info, id), hcsshim.DeactivateLayer(info, id)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := hcsshim.DestroyLayer(info, id); err != nil {
			return errors.Join(err, unprepared, deactivated)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("destroy layer %s: %w", folder, translateError(err))
	}
	return nil
}
