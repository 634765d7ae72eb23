package testenv

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/windows-machine-config/wmco/lab/fakemachineapi"
	"github.com/windows-machine-config/wmco/lab/fakeopenshift"
)

// vm is a virtual machine of the cloud.
type vm struct {
	cloud   *cloud
	spec    fakemachineapi.VirtualMachine
	number  int // of the address, for Windows
	address string
	stop    context.CancelFunc
	done    chan struct{} // closed when the virtual machine is fully removed

	// Under the cloud's lock:
	host    *Host // once it runs, for Windows
	running bool
	deleted bool
	err     error // why it does not run
}

// run runs the virtual machine until ctx is done.
func (v *vm) run(ctx context.Context, faults []*activeVMFault) {
	boot := v.cloud.env.options.VM.BootDuration
	for _, fault := range faults {
		boot += fault.BootDuration
	}
	if !v.waitDuration(ctx, boot) {
		return
	}
	live := v.liveLinux
	if v.spec.OperatingSystem == fakemachineapi.Windows {
		live = v.liveWindows
	}
	if err := live(ctx); err != nil && ctx.Err() == nil {
		v.updateLocked(func() { v.err = err })
	}
}

// waitDuration waits for a duration. It returns false if ctx is done.
func (v *vm) waitDuration(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := v.cloud.env.options.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}

// updateLocked changes the state of the virtual machine under the lock.
func (v *vm) updateLocked(change func()) {
	v.cloud.mu.Lock()
	defer v.cloud.mu.Unlock()
	change()
}

// liveWindows boots a simulated Windows host. At the end the host is removed with all its resources.
func (v *vm) liveWindows(ctx context.Context) error {
	r := v.cloud.env
	options, system := r.options.VM, imageSystem(v.spec.Image)
	options.RebootDuration = cmp.Or(options.RebootDuration, DefaultRebootDuration)
	system.Domain = options.Domain
	h := &Host{platform: r.platform, Options: HostOptions{
		Name: computerName(v.spec), Address: v.address, Username: machineUser(v.spec.Platform), System: &system,
		Domain: options.Domain, RebootDuration: options.RebootDuration, BootDelay: options.SSHDelay,
		FeatureDuration: options.FeatureDuration,
		DNSName:         internalDNS(v.spec.Platform, v.spec.MachineName, v.address),
		CloudName:       cloudName(v.spec.Platform, v.spec.MachineName, v.address),
	}, vm: v}
	h.guest = newGuest(ctx, v, h)
	h.address.Store(v.address)
	defer v.removeHost(h)
	if err := r.bootHost(ctx, h); err != nil {
		return err
	}
	v.updateLocked(func() { v.host, v.running, v.cloud.ever = h, true, append(v.cloud.ever, h) })
	<-ctx.Done()
	return nil
}

// removeHost removes the host with its address, name and files.
func (v *vm) removeHost(h *Host) {
	r := v.cloud.env
	h.close()
	if h.Options.DNSName != "" {
		r.network.SetName(h.Options.DNSName)
	}
	if network, ok := r.network.(interface{ RemoveAddress(string) }); ok {
		network.RemoveAddress(v.address)
	}
	_ = os.RemoveAll(r.filesOf(h)) // the environment removes the rest at its end
}

// filesOf returns the directory for the real files of a host. Computer names may be reused by other virtual machines.
func (r *Environment) filesOf(h *Host) string {
	if h.vm != nil {
		return filepath.Join(r.dir, "machines", h.vm.spec.ID)
	}
	return filepath.Join(r.dir, "hosts", h.Options.Name)
}

// liveLinux maintains the Node object of a Linux machine like a kubelet.
func (v *vm) liveLinux(ctx context.Context) error {
	name := v.spec.MachineName
	if v.spec.Platform == platformAWS {
		name = internalDNS(v.spec.Platform, name, v.address)
	}
	v.updateLocked(func() { v.running = true })
	node := fakeopenshift.LinuxNode{Name: name, Address: v.address, ProviderID: v.spec.ProviderID,
		Role: ignitionRole(v.spec.UserData)}
	return node.Run(ctx, v.cloud.clients, v.cloud.env.options.Clock)
}

// ignitionRole returns the role of the configuration that a Linux machine's user data fetches, such as worker.
func ignitionRole(userData []byte) string {
	var pointer struct {
		Ignition struct {
			Config struct {
				Merge []struct {
					Source string `json:"source"`
				} `json:"merge"`
			} `json:"config"`
		} `json:"ignition"`
	}
	if json.Unmarshal(userData, &pointer) == nil && len(pointer.Ignition.Config.Merge) > 0 {
		if source, err := url.Parse(pointer.Ignition.Config.Merge[0].Source); err == nil {
			return path.Base(source.Path)
		}
	}
	return "worker"
}
