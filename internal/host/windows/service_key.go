//go:build windows

// A service's registry key is read for its names, dependencies and environment. The environment has no call. Names
// stand there as they were given, also when they refer to a text in a file, which the calls resolve or, where the file
// lacks it, fail on. Dependencies that someone changed there take effect with the next boot and show in no call before.

package windows

import (
	"errors"
	"fmt"

	"golang.org/x/sys/windows/registry"

	"github.com/windows-machine-config/wmco/internal/host"
)

const servicesKey = `SYSTEM\CurrentControlSet\Services\`

// Values of a service's key.
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

// openServiceKey opens a service's key to read. The caller closes it.
func openServiceKey(name string) (serviceKey, error) {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, servicesKey+name, registry.QUERY_VALUE)
	if err != nil {
		return serviceKey{}, fmt.Errorf("open the registry key of service %s: %w", name, translate(err))
	}
	return serviceKey{key, name}, nil
}

func (k serviceKey) close() { _ = k.key.Close() }

// read fills in what the key has of a configuration.
func (k serviceKey) read(config *host.ServiceConfig) error {
	shown, err := k.text(displayNameValue)
	if err != nil {
		return err
	}
	config.DisplayName = ownDisplayName(config.Name, shown)
	if config.Description, err = k.text(descriptionValue); err != nil {
		return err
	}
	if config.Dependencies, err = k.dependencies(); err != nil {
		return err
	}
	message, err := k.text(rebootMessageValue)
	if err != nil {
		return err
	}
	if config.Recovery != nil && message != "" {
		config.Recovery.RebootMessage = message
	}
	config.Environment, err = k.list(environmentValue)
	return err
}

// dependencies returns the names of the services that the service depends on and, with their prefix, the load order
// groups.
func (k serviceKey) dependencies() ([]string, error) {
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

// serviceDependencies returns the dependencies of a service that is not open.
func serviceDependencies(name string) ([]string, error) {
	key, err := openServiceKey(name)
	if err != nil {
		return nil, err
	}
	defer key.close()
	return key.dependencies()
}

// text returns a value of the key; empty when it is not there.
func (k serviceKey) text(value string) (string, error) {
	text, _, err := k.key.GetStringValue(value)
	return text, k.check(value, err)
}

// list returns a value of the key; nil when it is not there or empty.
func (k serviceKey) list(value string) ([]string, error) {
	list, _, err := k.key.GetStringsValue(value)
	if len(list) == 0 {
		list = nil
	}
	return list, k.check(value, err)
}

// check passes over what is not there or of another type, which the service control manager passes over as well.
func (k serviceKey) check(value string, err error) error {
	if err == nil || errors.Is(err, registry.ErrNotExist) || errors.Is(err, registry.ErrUnexpectedType) {
		return nil
	}
	return fmt.Errorf("read %s of service %s: %w", value, k.name, translate(err))
}
