//go:build windows

// The environment of a service is the value Environment of its registry key, without a Windows API. All users of a
// machine may read the keys of services, and the environment may contain a proxy password. Therefore, a key with an
// environment is accessible only to Administrators and to SYSTEM, the account of the service control manager.
// GetSecurityInfo and SetSecurityInfo change the open key.

package windows

import (
	"errors"
	"fmt"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/windows-machine-config/wmco/internal/host"
)

// administratorsKeySDDL is a protected DACL that subkeys inherit (CI). KA grants all rights on registry keys. The
// owner is also set, because an owner may always change the DACL.
const administratorsKeySDDL = "O:BAD:P(A;CI;KA;;;SY)(A;CI;KA;;;BA)"

// setServiceEnvironment sets the environment of a service for its next process.
func setServiceEnvironment(name string, list []string) error {
	const access = registry.READ | registry.SET_VALUE | windows.WRITE_DAC | windows.WRITE_OWNER
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, servicesKey+name, access)
	if err != nil {
		return fmt.Errorf("set the environment: %w", translateError(err))
	}
	defer func() { _ = key.Close() }()
	if err := setEnvironment(key, list); err != nil {
		return fmt.Errorf("set the environment: %w", translateError(err))
	}
	return nil
}

// setEnvironment restricts the access to the key before a secret is stored, and removes the restriction after the
// environment is deleted.
func setEnvironment(key registry.Key, list []string) error {
	if len(list) > 0 {
		if err := setKeyAccess(key, host.AccessAdministrators); err != nil {
			return err
		}
		return key.SetStringsValue(environmentValue, list)
	}
	if err := key.DeleteValue(environmentValue); err != nil && !errors.Is(err, registry.ErrNotExist) {
		return err
	}
	return setKeyAccess(key, host.AccessInherited)
}

// setKeyAccess sets the access of a key. A key that already has the access is not changed.
func setKeyAccess(key registry.Key, access host.Access) error {
	now, err := keyAccess(key)
	if err != nil || now == access {
		return err
	}
	sddl, parts := inheritedSDDL,
		windows.SECURITY_INFORMATION(windows.DACL_SECURITY_INFORMATION|windows.UNPROTECTED_DACL_SECURITY_INFORMATION)
	if access == host.AccessAdministrators {
		sddl, parts = administratorsKeySDDL, accessParts|windows.PROTECTED_DACL_SECURITY_INFORMATION
	}
	if err := setSecurity(windows.Handle(key), windows.SE_REGISTRY_KEY, sddl, parts); err != nil {
		return fmt.Errorf("set the permissions of the registry key: %w", err)
	}
	return nil
}

// keyAccess returns the access of an open key.
func keyAccess(key registry.Key) (host.Access, error) {
	descriptor, err := windows.GetSecurityInfo(windows.Handle(key), windows.SE_REGISTRY_KEY, accessParts)
	if err != nil {
		return "", fmt.Errorf("read the permissions of the registry key: %w", err)
	}
	return accessOf(descriptor.String()), nil
}
