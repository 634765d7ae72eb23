//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/windows-machine-config/wmco/lab/wine/internal/wire"
)

// setUpNetwork assigns the address of the host to the link to the creator, which is already in the namespace.
func setUpNetwork(config wire.Config) error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find the loopback interface: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("bring the loopback interface up: %w", err)
	}
	if config.Interface == "" {
		return nil
	}
	link, err := netlink.LinkByName(config.Interface)
	if err != nil {
		return fmt.Errorf("find the interface %s: %w", config.Interface, err)
	}
	address := &net.IPNet{IP: config.Address.Addr().AsSlice(), Mask: net.CIDRMask(config.Address.Bits(), 32)}
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: address}); err != nil {
		return fmt.Errorf("give %s the address %s: %w", config.Interface, config.Address, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("bring %s up: %w", config.Interface, err)
	}
	// The gateway may be outside of the subnet.
	route := &netlink.Route{LinkIndex: link.Attrs().Index, Gw: config.Gateway.AsSlice(), Flags: int(netlink.FLAG_ONLINK)}
	if err := netlink.RouteAdd(route); err != nil {
		return fmt.Errorf("make %s the default gateway: %w", config.Gateway, err)
	}
	return nil
}

// routeOfWindows is the protocol of the routes that programs on Windows created. See
// lab/wine/standin/c/routes.c.
const routeOfWindows = unix.RTPROT_STATIC

// dropRoutes removes the routes that were created since the last boot: such routes do not survive a boot.
func dropRoutes() error {
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: routeOfWindows},
		netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return fmt.Errorf("list the routes: %w", err)
	}
	for _, route := range routes {
		if err := netlink.RouteDel(&route); err != nil {
			return fmt.Errorf("delete the route to %s: %w", route.Dst, err)
		}
	}
	return nil
}

// mount is one mount below the host's root.
type mount struct {
	source, target, kind string
	flags                uintptr
	data                 string
}

// setUpMounts mounts the root of the host: the shared read-only chroot with the prefix, names, devices and
// temporary files of the host. Only this process and its children see the mounts.
func setUpMounts(config wire.Config) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make all mounts private: %w", err)
	}
	if err := writeEtc(config); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(config.Dir, wire.RootDir), 0o755); err != nil {
		return err
	}
	mounts := []mount{
		{source: config.Root, flags: unix.MS_BIND},
		{flags: unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY},
		{source: "proc", target: "proc", kind: "proc"},
		{source: "tmpfs", target: "tmp", kind: "tmpfs", data: "mode=1777"},
		{source: "tmpfs", target: "run", kind: "tmpfs", data: "mode=755"},
		{source: "tmpfs", target: "dev", kind: "tmpfs", data: "mode=755"},
		{source: filepath.Join(config.Dir, wire.PrefixDir), target: wire.MountedPrefix, flags: unix.MS_BIND},
	}
	for _, name := range []string{"hosts", "passwd"} {
		mounts = append(mounts, mount{source: filepath.Join(config.Dir, wire.EtcDir, name), target: "etc/" + name,
			flags: unix.MS_BIND})
	}
	for target, source := range config.Overlays {
		mounts = append(mounts, mount{source: source, target: target, flags: unix.MS_BIND})
	}
	if _, err := os.Stat("/etc/resolv.conf"); err == nil {
		mounts = append(mounts, mount{source: "/etc/resolv.conf", target: "etc/resolv.conf", flags: unix.MS_BIND})
	}
	root := filepath.Join(config.Dir, wire.RootDir)
	for _, m := range mounts {
		if err := unix.Mount(m.source, filepath.Join(root, m.target), m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s at /%s of the host: %w", m.source, m.target, err)
		}
	}
	return setUpDevices(root)
}

// setUpDevices bind-mounts the devices that programs need from the machine, because the right to mount does not
// include the right to create devices.
func setUpDevices(root string) error {
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		target := filepath.Join(root, "dev", name)
		if err := os.WriteFile(target, nil, 0o600); err != nil {
			return err
		}
		if err := unix.Mount("/dev/"+name, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount /dev/%s: %w", name, err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "dev/shm"), 0o777); err != nil {
		return err
	}
	return os.Symlink("/proc/self/fd", filepath.Join(root, "dev/fd"))
}

// writeEtc writes the files that are mounted over files in /etc. The user name determines %USERNAME%.
func writeEtc(config wire.Config) error {
	dir := filepath.Join(config.Dir, wire.EtcDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range map[string]string{
		"hosts":  "", // written at each boot
		"passwd": "Administrator:x:0:0:Administrator:/root:/bin/sh\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return fmt.Errorf("write /etc/%s of the host: %w", name, err)
		}
	}
	return nil
}
