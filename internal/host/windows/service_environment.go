//go:build windows

// A service's own environment is the value Environment of its registry key, for which there is no call. All users of a
// machine may read the keys of services, and the environment may hold the password of a proxy; so a key with one is for
// SYSTEM, as which the service control manager runs, and Administrators alone (GetSecurityInfo and SetSecurityInfo on
// the open key).

package windows

import (
	"errors"
	"fmt"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/windows-machine-config/wmco/internal/host"
)

// administratorsKeySDDL is a protected DACL that is handed down to keys below (CI): KA is every right on registry keys.
// An owner may always change the DACL, so the owner is set, too.
const administratorsKeySDDL = "O:BAD:P(A;CI;KA;;;SY)(A;CI;KA;;;BA)"

// setServiceEnvironment sets the service's own environment, which its next process gets.
func setServiceEnvironment(name string, list []string) error {
	const access = registry.READ | registry.SET_VALUE | windows.WRITE_DAC | windows.WRITE_OWNER
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, servicesKey+name, access)
	if err != nil {
		return fmt.Errorf("set its environment: %w", translate(err))
	}
	defer func() { _ = key.Close() }()
	if err := setEnvironment(key, list); err != nil {
		return fmt.Errorf("set its environment: %w", translate(err))
	}
	return nil
}

// setEnvironment closes the key before there is a secret in it, and opens it when there is none any more.
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

// setKeyAccess changes who may use a key. One that has the access already is left alone.
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
		return fmt.Errorf("set its permissions: %w", err)
	}
	return nil
}

// keyAccess reads who may use an open key.
func keyAccess(key registry.Key) (host.Access, error) {
	descriptor, err := windows.GetSecurityInfo(windows.Handle(key), windows.SE_REGISTRY_KEY, accessParts)
	if err != nil {
		return "", fmt.Errorf("read its permissions: %w", err)
	}
	return accessOf(descriptor.String()), nil
}
