package fake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// sandbox is a pod of a container runtime. The file of its layer is in use while mounted: until the runtime ends the
// sandbox or the machine restarts. The end of the shim does not unmount the layer.
type sandbox struct {
	host.Sandbox
	endpoint string // key
	shim     *Process
	layer    *hold
}

// MountSandbox adds a sandbox with a shim to the runtime at the endpoint and mounts an existing file as its layer. It
// replaces a sandbox with the same ID.
func (m *Machine) MountSandbox(endpoint string, of host.Sandbox, shim *Process, layer string) error {
	m.lock()
	defer m.unlock()
	at, err := m.drive.resolvePath(layer, true)
	if err != nil {
		return fmt.Errorf("mount %s: %w", layer, err)
	}
	if at.node == nil {
		return fmt.Errorf("mount %s: %w", layer, errNotFound)
	}
	if before := m.sandboxes[of.ID]; before != nil {
		before.unmountLayer()
	}
	m.sandboxes[of.ID] = &sandbox{of, foldCase(endpoint), shim, at.node.addHold("the mounted layer of pod "+of.Name, false)}
	return nil
}

func (s *sandbox) unmountLayer() {
	if s.layer != nil {
		s.layer.releaseNode()
		s.layer = nil
	}
}

// unmountAll unmounts all layers, as a restart does. The runtime still lists its sandboxes.
func (m *Machine) unmountAll() {
	for _, s := range m.sandboxes {
		s.unmountLayer()
	}
}

// sandboxes implements host.Sandboxes for one process.
type sandboxes struct{ p *Process }

func (b sandboxes) List(ctx context.Context, endpoint string) (found []host.Sandbox, err error) {
	err = b.p.runOperation(ctx, "Sandboxes", "List", endpoint, func(m *Machine) error {
		if m.runtimes[foldCase(endpoint)] == nil {
			return fmt.Errorf("query the container runtime at %s: %w", endpoint, errNotFound)
		}
		for _, id := range slices.Sorted(maps.Keys(m.sandboxes)) {
			if m.sandboxes[id].endpoint == foldCase(endpoint) {
				found = append(found, m.sandboxes[id].Sandbox)
			}
		}
		return nil
	})
	return found, err
}

func (b sandboxes) End(ctx context.Context, endpoint, id string) error {
	return b.p.runOperation(ctx, "Sandboxes", "End", strings.Join([]string{endpoint, id}, " "), func(m *Machine) error {
		if m.runtimes[foldCase(endpoint)] == nil {
			return fmt.Errorf("query the container runtime at %s: %w", endpoint, errNotFound)
		}
		s := m.sandboxes[id]
		if s == nil || s.endpoint != foldCase(endpoint) {
			return nil
		}
		s.unmountLayer()
		if s.shim != nil {
			s.shim.endProcess(0, false)
		}
		delete(m.sandboxes, id)
		return nil
	})
}
