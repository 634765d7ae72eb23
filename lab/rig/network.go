package rig

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Network lets hosts listen, and the operator reach them. A winhost.Network is one within the process.
type Network interface {
	// Listen opens a port of a host's address.
	Listen(address string, port int) (net.Listener, error)
	// DialContext dials host:port, where host is an address or a DNS name.
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	// SetName gives a DNS name its addresses.
	SetName(name string, addresses ...string)
}

// RealNetwork is the operating system's network: in a namespace that has the hosts' addresses and names.
type RealNetwork struct{}

// Listen implements Network.
func (RealNetwork) Listen(address string, port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
}

// DialContext implements Network.
func (RealNetwork) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}

// SetName does nothing: the namespace was given its names when it was made.
func (RealNetwork) SetName(string, ...string) {}

// Address returns the IPv4 address of the n-th host, from 1.
func Address(n int) string { return fmt.Sprintf("10.9.%d.%d", (n-1)/250, (n-1)%250+1) }

// DNSName returns the name of the n-th host, where it has one.
func DNSName(n int) string { return fmt.Sprintf("instance-%d.example.com", n) }

// dialAPI dials for programs on hosts, which reach the API server under its cluster-internal name, as they would in a
// cluster.
func (r *Rig) dialAPI(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if host == r.apiName() {
		address = r.apiAddress
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// apiName returns the cluster-internal name of the API server.
func (r *Rig) apiName() string { return "api-int." + r.domain() }

// apiAddress is what the API server's internal name stands for on hosts: the address of the cluster's load balancer.
const apiAddress = "10.9.255.254"

// hostNetwork is what hosts see of the network: the others, and the API server under its internal name.
type hostNetwork struct{ rig *Rig }

// LookupHost implements fake.Network.
func (n hostNetwork) LookupHost(ctx context.Context, name string) ([]string, error) {
	if strings.EqualFold(name, n.rig.apiName()) {
		return []string{apiAddress}, nil
	}
	if own, ok := n.rig.network.(interface {
		LookupHost(ctx context.Context, name string) ([]string, error)
	}); ok {
		return own.LookupHost(ctx, name)
	}
	return net.DefaultResolver.LookupHost(ctx, name)
}

// DialContext implements fake.Network.
func (n hostNetwork) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if host, _, err := net.SplitHostPort(address); err == nil && (host == apiAddress || address == n.rig.apiAddress) {
		return new(net.Dialer).DialContext(ctx, network, n.rig.apiAddress)
	}
	return n.rig.network.DialContext(ctx, network, address)
}
