package wine

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
)

// link is a pair of virtual Ethernet devices between the network namespaces of the creator and a host. It is
// removed with either namespace.
type link struct {
	outside, inside string // the names of both ends
}

// newLink creates the link to the namespace of the process and the route to the host. The creator's end answers
// for all addresses with a known route: hosts reach each other through it as if on one segment.
func newLink(pid int, address, gateway netip.Addr) (link, error) {
	four := address.As4()
	l := link{outside: fmt.Sprintf("wine-%x", four[:]), inside: "eth0"}
	attributes := netlink.NewLinkAttrs()
	attributes.Name = l.outside
	err := addVeth(&netlink.Veth{LinkAttrs: attributes, PeerName: l.inside, PeerNamespace: netlink.NsPid(pid)})
	if errors.Is(err, syscall.EEXIST) {
		return link{}, fmt.Errorf("the address %s is in use by another Wine host: interface %s is there", address, l.outside)
	}
	if err != nil {
		return link{}, fmt.Errorf("make the network interface %s: %w", l.outside, err)
	}
	if err := l.configureOutside(address, gateway); err != nil {
		return link{}, errors.Join(err, l.removeDevice())
	}
	return l, nil
}

// interfaceTimeout is the maximum time that the interface of an ended host still exists. The kernel removes the
// interface some time after the namespace.
const interfaceTimeout = 5 * time.Second

func addVeth(veth *netlink.Veth) error {
	for deadline := time.Now().Add(interfaceTimeout); ; time.Sleep(50 * time.Millisecond) {
		err := netlink.LinkAdd(veth)
		if !errors.Is(err, syscall.EEXIST) || time.Now().After(deadline) {
			return err
		}
	}
}

func (l link) configureOutside(address, gateway netip.Addr) error {
	outside, err := netlink.LinkByName(l.outside)
	if err != nil {
		return fmt.Errorf("find the network interface %s: %w", l.outside, err)
	}
	for _, setting := range []string{"forwarding", "proxy_arp"} {
		if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+l.outside+"/"+setting, []byte("1"), 0); err != nil {
			return fmt.Errorf("let hosts reach each other over %s: %w", l.outside, err)
		}
	}
	gatewayNet := &net.IPNet{IP: gateway.AsSlice(), Mask: net.CIDRMask(32, 32)}
	if err := netlink.AddrAdd(outside, &netlink.Addr{IPNet: gatewayNet}); err != nil {
		return fmt.Errorf("give %s the address %s: %w", l.outside, gateway, err)
	}
	if err := netlink.LinkSetUp(outside); err != nil {
		return fmt.Errorf("bring %s up: %w", l.outside, err)
	}
	to := &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(32, 32)}
	err = netlink.RouteAdd(&netlink.Route{LinkIndex: outside.Attrs().Index, Dst: to, Src: gateway.AsSlice(),
		Scope: netlink.SCOPE_LINK})
	if err != nil {
		return fmt.Errorf("make a route to %s: %w", address, err)
	}
	return nil
}

func (l link) removeDevice() error {
	if l.outside == "" {
		return nil
	}
	outside, err := netlink.LinkByName(l.outside)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil // removed with the host's namespace
	}
	if err == nil {
		err = netlink.LinkDel(outside)
	}
	if err != nil && !errors.Is(err, syscall.ENODEV) {
		return fmt.Errorf("remove the network interface %s: %w", l.outside, err)
	}
	return nil
}
