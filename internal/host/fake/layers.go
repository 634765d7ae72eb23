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
	at, err := m.drive.resolvePath(folder, false)
	if err == nil && (at.node == nil || !at.node.isDirectory()) {
		err = errNotFound
	}
	if err != nil {
		return fmt.Errorf("create a layer in %s: %w", folder, err)
	}
	at.node.layer = true
	return nil
}

// layers implements host.Layers for one process.
type layers struct{ p *Process }

func (l layers) Destroy(ctx context.Context, folder string) error {
	return l.p.runOperation(ctx, "Layers", "Destroy", folder, func(m *Machine) error {
		at, err := m.drive.resolveExisting(folder, false)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, s := range m.sandboxes {
			if s.layer == nil || !s.layer.node.isWithin(at.node) {
				continue
			}
			if s.shim != nil && m.processes[s.shim.PID] == s.shim {
				return fmt.Errorf("a container of pod %s runs in %s: %w", s.Name, folder, host.ErrInUse)
			}
			s.unmountLayer()
		}
		at.node.layer = false
		return m.drive.pruneTree(at.node)
	})
}

// isWithin reports whether a node is the other node or a descendant of it.
func (n *node) isWithin(other *node) bool {
	for ; n != nil; n = n.parent {
		if n == other {
			return true
		}
	}
	return false
}
