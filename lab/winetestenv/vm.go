package winetestenv

import (
	"context"
	"fmt"
	"net/netip"

	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/userdata"
	"github.com/windows-machine-config/wmco/lab/fakemachineapi"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/wine"
)

// vm is a virtual machine of the cloud: a Wine host with the agent of the platform.
type vm struct {
	cloud   *Cloud
	spec    fakemachineapi.VirtualMachine
	address netip.Addr
	system  wine.Identity
	windows testenv.PlatformWindows
	stop    context.CancelFunc

	// Guarded by the lock of the cloud:
	host    *wine.Host // set from the first boot on
	deleted bool
	err     error // why the virtual machine is not running
}

// runMachine runs the virtual machine until ctx is done, and then removes everything.
func (v *vm) runMachine(ctx context.Context) {
	h, err := v.createHost(ctx)
	if err == nil {
		err = v.operateHost(ctx, h)
	}
	if err != nil && ctx.Err() == nil {
		v.cloud.options.Logger.Error("a virtual machine does not run", "machine", v.spec.MachineName, "error", err)
		v.updateLocked(func() { v.err = err })
	}
	<-ctx.Done()
	var closed error
	if h != nil {
		closed = h.Close()
	}
	v.updateLocked(func() {
		if closed != nil {
			v.cloud.errs = append(v.cloud.errs, closed)
		}
		delete(v.cloud.vms, v.spec.ID)
		delete(v.cloud.usedAddresses, v.address)
	})
}

// updateLocked changes the state of the virtual machine under the lock.
func (v *vm) updateLocked(change func()) {
	v.cloud.mu.Lock()
	defer v.cloud.mu.Unlock()
	change()
}

// createHost creates the host, which is off.
func (v *vm) createHost(ctx context.Context) (*wine.Host, error) {
	options := v.cloud.options.Host
	options.Name, options.Address, options.System = v.windows.ComputerName, v.address, v.system
	options.Users, options.AuthorizedKeys = []string{v.windows.Username}, v.windows.ImageKeys
	return v.cloud.kit.newHost(ctx, options)
}

// operateHost boots the host and performs the actions of the platform's agent at each boot.
func (v *vm) operateHost(ctx context.Context, h *wine.Host) error {
	v.updateLocked(func() { v.host = h }) // The platform reports the address as soon as the machine is on.
	if err := h.Start(ctx); err != nil {
		return err
	}
	log := v.cloud.options.Logger.With("machine", v.spec.MachineName, "host", h.Name())
	if v.windows.Script == nil {
		log.Info("there is no user data that the platform's agent would run")
		return nil
	}
	for boot := 1; boot == 1 || v.windows.EachBoot; boot++ {
		if err := h.WaitBoot(ctx, boot); err != nil {
			return err
		}
		// An agent with invalid user data leaves a running machine without access.
		if err := runUserData(ctx, h, v.windows.Script); err != nil {
			log.Error("the user data has not run", "boot", boot, "error", err)
		} else {
			log.Info("the user data has run", "boot", boot)
		}
	}
	return nil
}

// runUserData applies the settings in the header of a script instead of running the script.
func runUserData(ctx context.Context, h *wine.Host, script []byte) error {
	settings, err := userdata.ParseHeader(script)
	if err != nil {
		return err
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(settings.PublicKey))
	if err != nil {
		return fmt.Errorf("the public key of the user data: %w", err)
	}
	for _, port := range settings.Ports {
		if err := openPort(ctx, h, port); err != nil {
			return err
		}
	}
	return h.AuthorizeKey(settings.User, key)
}

// firewallRules is the registry key with the rules of the Windows firewall. The fake firewall uses the same key
// and blocks nothing.
const firewallRules = `HKLM\System\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules`

// openPort adds a rule to the firewall.
func openPort(ctx context.Context, h *wine.Host, port int) error {
	name := fmt.Sprintf("user-data-%d", port)
	rule := fmt.Sprintf("v2.30|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=%d|Name=%s|Desc=TCP %d, by the user data|",
		port, name, port)
	result, err := h.Exec(ctx, host.CommandLine("reg", "add", firewallRules, "/v", name, "/t", "REG_SZ", "/d", rule, "/f"))
	if err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("reg add: exit code %d: %s%s", result.ExitCode, result.Stdout, result.Stderr)
	}
	if err != nil {
		return fmt.Errorf("open TCP %d in the firewall: %w", port, err)
	}
	return nil
}
