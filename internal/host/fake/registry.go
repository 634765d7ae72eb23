package fake

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// registry are the numeric values below HKEY_LOCAL_MACHINE that the product uses, guarded by the machine's lock.
type registry map[string]uint32

func registryKey(path, name string) string { return foldCase(path + `\` + name) }

// registryValues implements host.Registry for one process.
type registryValues struct{ p *Process }

func (r registryValues) Number(ctx context.Context, at host.RegistryName) (value uint32, err error) {
	err = r.runOperation(ctx, "Number", at, func(m *Machine, name string) error {
		number, there := m.registry[name]
		if !there {
			return errNotFound
		}
		value = number
		return nil
	})
	return value, err
}

func (r registryValues) SetNumber(ctx context.Context, at host.RegistryName, value uint32) error {
	return r.runOperation(ctx, "SetNumber", at, func(m *Machine, name string) error {
		m.registry[name] = value
		r.p.recordEntry(KindRegistry, fmt.Sprintf("set %s to %d", at, value), 0)
		return nil
	})
}

func (r registryValues) Delete(ctx context.Context, at host.RegistryName) error {
	return r.runOperation(ctx, "Delete", at, func(m *Machine, name string) error {
		if _, there := m.registry[name]; there {
			delete(m.registry, name)
			r.p.recordEntry(KindRegistry, "delete "+at.String(), 0)
		}
		return nil
	})
}

func (r registryValues) runOperation(ctx context.Context, method string, at host.RegistryName,
	action func(m *Machine, name string) error) error {
	return r.p.runOperation(ctx, "Registry", method, at.String(), func(m *Machine) error {
		err := errParameter
		if at.Name != "" && strings.Trim(at.Key, `\`) == at.Key && at.Key != "" {
			err = action(m, registryKey(at.Key, at.Name))
		}
		if err != nil {
			return fmt.Errorf("%s registry value %s: %w", strings.ToLower(method), at, err)
		}
		return nil
	})
}

// RegistryNumbers returns the numeric values that were set, by lower-case key and name.
func (m *Machine) RegistryNumbers() map[string]uint32 {
	m.lock()
	defer m.unlock()
	return maps.Clone(m.registry)
}
