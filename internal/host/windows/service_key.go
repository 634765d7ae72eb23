//go:build windows

// The registry key of a service is read for its names, dependencies and environment. The environment has no API. The
// key contains names literally, even if a name refers to a text in a file: the API resolves such references, or
// fails if the file lacks the text. Dependencies changed in the key take effect at the next boot, and no API reports
// them before.

package windows

import (
	"errors"
	"fmt"

	"golang.org/x/sys/windows/registry"

	"github.com/windows-machine-config/wmco/internal/host"
)

const servicesKey = `SYSTEM\CurrentControlSet\Services\`

// Values of a service key.
const (
	displayNameValue   = "DisplayName"
	descriptionValue   = "Description"
	rebootMessageValue = "RebootMessage"
	dependenciesValue  = "DependOnService" // REG_MULTI_SZ
	groupsValue        = "DependOnGroup"   // REG_MULTI_SZ
	environmentValue   = "Environment"     // REG_MULTI_SZ
)

// loadGroupPrefix marks a load order group among dependencies (SC_GROUP_IDENTIFIER).
const loadGroupPrefix = "+"

// serviceKey is the open registry key of a service.
type serviceKey struct {
	key  registry.Key
	name string // of the service
}

// openServiceKey opens the key of a service for reading. The caller must close it.
func openServiceKey(name string) (serviceKey, error) {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, servicesKey+name, registry.QUERY_VALUE)
	if err != nil {
		return serviceKey{}, fmt.Errorf("open the registry key of service %s: %w", name, translateError(err))
	}
	return serviceKey{key, name}, nil
}

func (k serviceKey) close() { _ = k.key.Close() }

// read adds the data of the key to a configuration.
func (k serviceKey) read(config *host.ServiceConfig) error {
	shown, err := k.readText(displayNameValue)
	if err != nil {
		return err
	}
	config.DisplayName = explicitDisplayName(config.Name, shown)
	if config.Description, err = k.readText(descriptionValue); err != nil {
		return err
	}
	if config.Dependencies, err = k.readDependencies(); err != nil {
		return err
	}
	message, err := k.readText(rebootMessageValue)
	if err != nil {
		return err
	}
	if config.Recovery != nil && message != "" {
		config.Recovery.RebootMessage = message
	}
	config.Environment, err = k.list(environmentValue)
	return err
}

// readDependencies returns the service dependencies and, with their prefix, the load order groups.
func (k serviceKey) readDependencies() ([]string, error) {
	dependencies, err := k.list(dependenciesValue)
	if err != nil {
		return nil, err
	}
	groups, err := k.list(groupsValue)
	for _, group := range groups {
		dependencies = append(dependencies, loadGroupPrefix+group)
	}
	return dependencies, err
}

// serviceDependencies opens the key of a service and returns the dependencies.
func serviceDependencies(name string) ([]string, error) {
	key, err := openServiceKey(name)
	if err != nil {
		return nil, err
	}
	defer key.close()
	return key.readDependencies()
}

// readText returns a value of the key, or "" for a missing value.
func (k serviceKey) readText(value string) (string, error) {
	text, _, err := k.key.GetStringValue(value)
	return text, k.ignoreMissing(value, err)
}

// list returns a value of the key, or nil for a missing or empty value.
func (k serviceKey) list(value string) ([]string, error) {
	list, _, err := k.key.GetStringsValue(value)
	if len(list) == 0 {
		list = nil
	}
	return list, k.ignoreMissing(value, err)
}

// ignoreMissing ignores missing values and values of another type, like the service control manager.
func (k serviceKey) ignoreMissing(value string, err error) error {
	if err == nil || errors.Is(err, registry.ErrNotExist) || errors.Is(err, registry.ErrUnexpectedType) {
		return nil
	}
	return fmt.Errorf("read %s of service %s: %w", value, k.name, translateError(err))
}
