package winetestenv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"

	"github.com/windows-machine-config/wmco/lab/fakemachineapi"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/wine"
)

// CloudOptions apply to all hosts of a cloud.
type CloudOptions struct {
	// Addresses are the addresses for hosts, which limit the number of concurrent hosts. Required.
	Addresses []netip.Addr
	// Host contains the options of all hosts, such as Gateway, Names and Files. Options that depend on the
	// Machine are overwritten: name, address, version of Windows, user and keys.
	Host wine.Options
	// Logger receives the progress of hosts. Default: nothing is logged.
	Logger *slog.Logger
}

// Cloud is a platform API that creates Wine hosts for Windows Machines. Linux Machines are refused. A host
// accepts the keys of its image and its user data, as on each platform. If the image has no SSH server, the
// Wine host runs a server that refuses all keys.
type Cloud struct {
	kit     *Kit
	env     *testenv.Environment
	options CloudOptions
	running context.Context
	stop    context.CancelFunc
	group   sync.WaitGroup

	mu            sync.Mutex
	vms           map[string]*vm // by ID
	last          int            // the index of the last assigned address
	usedAddresses map[netip.Addr]bool
	errs          []error // of hosts that failed to end
}

var _ fakemachineapi.Cloud = (*Cloud)(nil)

// NewCloud creates a cloud without hosts. The caller closes the cloud before the environment.
func (k *Kit) NewCloud(ctx context.Context, r *testenv.Environment, options CloudOptions) *Cloud {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Cloud{kit: k, env: r, options: options, vms: map[string]*vm{}, last: -1, usedAddresses: map[netip.Addr]bool{}}
	c.running, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	return c
}

// Close removes all hosts. The Machine API must have ended before.
func (c *Cloud) Close() error {
	c.stop()
	c.group.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.errs...)
}

// Host returns the host of a Machine; nil while the virtual machine is not running or if it was deleted.
func (c *Cloud) Host(machine string) *wine.Host {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.vms {
		if v.spec.MachineName == machine && !v.deleted {
			return v.host
		}
	}
	return nil
}

// Create implements fakemachineapi.Cloud.
func (c *Cloud) Create(_ context.Context, spec fakemachineapi.VirtualMachine) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.vms[spec.ID] != nil {
		return nil
	}
	system, err := imageSystem(spec)
	if err != nil {
		return fakemachineapi.Permanent(err)
	}
	index, err := c.freeAddress()
	if err != nil {
		return err
	}
	v := &vm{cloud: c, spec: spec, address: c.options.Addresses[index], system: system}
	if v.windows, err = c.env.PlatformWindows(spec, v.address.String()); err != nil {
		return err
	}
	c.last, c.usedAddresses[v.address], c.vms[spec.ID] = index, true, v
	var ctx context.Context
	ctx, v.stop = context.WithCancel(c.running)
	c.group.Go(func() { v.runMachine(ctx) })
	return nil
}

// imageSystem returns the version of Windows for an image: 2019 if the name contains 2019, otherwise 2022.
// Images with Linux or with Windows Server 2025 are refused.
func imageSystem(spec fakemachineapi.VirtualMachine) (wine.Identity, error) {
	switch {
	case spec.OperatingSystem != fakemachineapi.Windows:
		return wine.Identity{}, fmt.Errorf("the image %s is one with %s, and this cloud has hosts with Windows only",
			spec.Image, spec.OperatingSystem)
	case strings.Contains(spec.Image, "2025"):
		return wine.Identity{}, fmt.Errorf("the image %s is not there: Wine hosts are Windows Server 2019 or 2022",
			spec.Image)
	case strings.Contains(spec.Image, "2019"):
		return wine.WindowsServer2019(), nil
	}
	return wine.WindowsServer2022(), nil
}

// freeAddress returns the least recently used free address. The caller holds the lock.
func (c *Cloud) freeAddress() (int, error) {
	count := len(c.options.Addresses)
	for i := range count {
		index := (c.last + 1 + i) % count
		if !c.usedAddresses[c.options.Addresses[index]] {
			return index, nil
		}
	}
	return 0, fmt.Errorf("all %d addresses for Wine hosts are in use: delete Machines", count)
}

// Describe implements fakemachineapi.Cloud.
func (c *Cloud) Describe(_ context.Context, id string) (fakemachineapi.VirtualMachineStatus, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.vms[id]
	if v == nil {
		return fakemachineapi.VirtualMachineStatus{}, false, nil
	}
	status := fakemachineapi.VirtualMachineStatus{State: fakemachineapi.Pending, ProviderID: v.spec.ProviderID}
	if v.err != nil {
		return status, true, v.err
	}
	if v.deleted {
		status.State = fakemachineapi.Stopped
	} else if v.host != nil {
		status.State = fakemachineapi.Running
	}
	if v.host != nil {
		status.Addresses = v.windows.Addresses
	}
	return status, true, nil
}

// Delete implements fakemachineapi.Cloud. The host is removed when Describe no longer finds it.
func (c *Cloud) Delete(_ context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.vms[id]; v != nil {
		v.deleted = true
		v.stop()
	}
	return nil
}
