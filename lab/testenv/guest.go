package testenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/userdata"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// KindUserData is the kind of a virtual machine's journal entries about user data.
const KindUserData fake.Kind = "user-data"

// sshRule is the firewall rule that Windows installs with its SSH server.
const sshRule = "OpenSSH-Server-In-TCP"

// guest is the platform's agent inside a virtual machine, such as EC2Launch. It finds the user data like that agent.
// Instead of running the script, the guest performs the actions that the script's header declares.
type guest struct {
	vm     *vm
	host   *Host
	alive  context.Context // until the virtual machine is deleted
	script []byte
	always bool // run at each boot, not only the first

	mu    sync.Mutex
	clean bool // the default firewall rule was removed
	ran   bool
	down  context.CancelFunc // cancels the work of this boot
}

func newGuest(alive context.Context, v *vm, h *Host) *guest {
	g := &guest{vm: v, host: h, alive: alive, down: func() {}}
	g.script, g.always = runnableScript(v.spec.Platform, v.spec.UserData)
	return g
}

// runnableScript returns the script in the user data that the platform's agent runs, nil if there is none, and
// whether the agent runs the script at each boot.
func runnableScript(platform string, userData []byte) (script []byte, always bool) {
	switch platform {
	case platformAWS: // EC2Launch runs the text between tags.
		_, rest, found := bytes.Cut(userData, []byte("<powershell>"))
		script, outside, closed := bytes.Cut(rest, []byte("</powershell>"))
		if !found || !closed {
			return nil, false
		}
		return bytes.TrimLeft(script, "\r\n"), bytes.Contains(outside, []byte("<persist>true</persist>"))
	case platformAzure: // The Machine API runs the custom data as a script at the first logon of the setup.
		return untaggedScript(userData), false
	case platformGCP: // windows-startup-script-ps1
		return untaggedScript(userData), true
	case platformNutanix: // Cloudbase-Init, which recognizes scripts by their first line
		if bytes.HasPrefix(userData, []byte("#ps1")) {
			return userData, false
		}
	}
	return nil, false // The Machine API passes the data as for Ignition, which nothing in a Windows template reads.
}

// untaggedScript returns a script, or nil if it is not PowerShell: tags are a syntax error in PowerShell.
func untaggedScript(script []byte) []byte {
	if bytes.HasPrefix(bytes.TrimSpace(script), []byte("<")) || bytes.HasPrefix(bytes.TrimSpace(script), []byte("{")) {
		return nil
	}
	return script
}

// configureImage configures the SSH server as in the platform's images: either not installed, or with the operator's
// key at the time when the image was created.
func (g *guest) configureImage(options *winhost.Options) {
	user := g.host.Options.Username
	options.HostKey = hostKeyInImage(g.vm.spec.Platform, g.vm.spec.Image)
	if hasKeyInImage(g.vm.spec.Platform) {
		options.AuthorizedKeys = map[string][]ssh.PublicKey{user: {g.vm.cloud.env.imageKey()}}
		return
	}
	options.NotInstalled, options.Administrators = true, []string{user}
}

// startBootWork starts the agent's work at a boot.
func (g *guest) startBootWork() {
	g.mu.Lock()
	defer g.mu.Unlock()
	ctx, cancel := context.WithCancel(g.alive)
	g.down = cancel
	if !g.clean && !hasKeyInImage(g.vm.spec.Platform) {
		// An image without an SSH server has no rule for it. An error means that the machine went down, and then
		// nothing can listen.
		g.clean = g.host.Machine().Host().Firewall.DeleteRule(ctx, sshRule) == nil
	}
	if g.script == nil || g.ran && !g.always {
		return
	}
	env, c := g.vm.cloud.env, g.vm.cloud
	c.mu.Lock()
	faults := c.faultsOf(g.vm.spec.MachineName)
	c.mu.Unlock()
	env.group.Go(func() {
		err := g.run(ctx, faults)
		if ctx.Err() != nil {
			err = errors.New("the machine went down before the user data had run")
		}
		g.recordUserData(err)
	})
}

// stopBootWork stops the work of the boot.
func (g *guest) stopBootWork() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down()
}

func (g *guest) recordUserData(err error) {
	detail := "has run"
	if err != nil {
		detail = err.Error()
	}
	g.host.Machine().Journal().Append(KindUserData, detail, 0)
}

// run performs the actions of the script in their order.
func (g *guest) run(ctx context.Context, faults []*activeVMFault) error {
	delay, refuse := g.vm.cloud.env.options.VM.UserDataDelay, false
	for _, fault := range faults {
		delay += fault.UserDataDelay
		refuse = refuse || fault.KeyRefusalDuration > 0 || fault.RefusesOnceMore
	}
	if !g.vm.waitDuration(ctx, delay) {
		return ctx.Err()
	}
	if err := awaitCleared(ctx, faults); err != nil {
		return err
	}
	settings, err := userdata.ParseHeader(g.script)
	if err != nil {
		return err
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(settings.PublicKey))
	if err != nil {
		return fmt.Errorf("the public key of the user data: %w", err)
	}
	if refuse {
		if err := g.openPorts(ctx, settings.Ports); err != nil {
			return err
		}
		g.host.Install()
		for _, fault := range faults {
			if !g.vm.waitDuration(ctx, fault.KeyRefusalDuration) || fault.RefusesOnceMore && g.awaitLogin(ctx) != nil {
				return ctx.Err()
			}
		}
	}
	if err := g.host.AuthorizeKey(settings.User, key); err != nil {
		return err
	}
	if err := g.openPorts(ctx, settings.Ports); err != nil {
		return err
	}
	g.host.Install()
	g.mu.Lock()
	g.ran = true
	g.mu.Unlock()
	return nil
}

// awaitCleared waits while the user data hangs.
func awaitCleared(ctx context.Context, faults []*activeVMFault) error {
	for _, fault := range faults {
		if !fault.UserDataHangs {
			continue
		}
		select {
		case <-fault.cleared:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// awaitLogin waits for the end of the next login attempt.
func (g *guest) awaitLogin(ctx context.Context) error {
	journal := g.host.Machine().Journal()
	before := journal.Count(winhost.KindLogin)
	return g.host.Machine().WaitFor(ctx, func(*fake.Machine) bool { return journal.Count(winhost.KindLogin) > before })
}

// openPorts opens ports in the firewall.
func (g *guest) openPorts(ctx context.Context, ports []int) error {
	for _, port := range ports {
		rule := host.FirewallRule{
			Name: fmt.Sprintf("user-data-%d", port), DisplayName: fmt.Sprintf("TCP %d, by the user data", port),
			Protocol: "TCP", LocalPort: port, Enabled: true, Allow: true,
		}
		if port == sshPort {
			rule.Name, rule.DisplayName = sshRule, "OpenSSH SSH Server (sshd)"
		}
		if err := g.host.Machine().Host().Firewall.SetRule(ctx, rule); err != nil {
			return err
		}
	}
	return nil
}
