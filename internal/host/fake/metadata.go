package fake

import (
	"context"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/host"
)

// metadata implements host.Metadata for one process.
type metadata struct{ p *Process }

func (d metadata) HostName(ctx context.Context, platform string) (name string, err error) {
	err = d.p.runOperation(ctx, "Metadata", "HostName", platform, func(m *Machine) error {
		if name = m.options.Metadata[platform]; name == "" {
			return fmt.Errorf("query the metadata service of platform %s: %w", platform, host.ErrNotExist)
		}
		return nil
	})
	return name, err
}
