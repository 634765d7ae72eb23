package fake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/windows-machine-config/wmco/internal/host"
)

// MakeLayer marks an existing directory as the layer of an image or container, which only Layers.Destroy can remove.
func (m *Machine) MakeLayer(folder string) error {
	m.lock()
	defer m.unlock()
	at, err := m.drive.resolve(folder, false)
	if err == nil && (at.node == nil || !at.node.directory()) {
		err = errNotFound
	}
	if err != nil {
		return fmt.Errorf("make a layer of %s: %w", folder, err)
	}
	at.node.layer = true
	return nil
}

// layers implements host.Layers for one process.
type layers struct{ p *Process }

func (l layers) Destroy(ctx context.Context, folder string) error {
	return l.p.do(ctx, "Layers", "Destroy", folder, func(m *Machine) error {
		at, err := m.drive.existing(folder, false)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, s := range m.sandboxes {
			if s.layer == nil || !s.layer.node.within(at.node) {
				continue
			}
			if s.shim != nil && m.processes[s.shim.PID] == s.shim {
				return fmt.Errorf("a container of pod %s runs in %s: %w", s.Name, folder, host.ErrInUse)
			}
			s.unmount()
		}
		at.node.layer = false
		return m.drive.prune(at.node)
	})
}

// within reports whether a node is the other node or a descendant of it.
func (n *node) within(other *node) bool {
	for ; n != nil; n = n.parent {
		if n == other {
			return true
		}
	}
	return false
}
