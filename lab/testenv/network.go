package testenv

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Network lets hosts listen, and lets the operator reach the hosts. A winhost.Network is a network within the
// process.
type Network interface {
	// Listen opens a port of a host's address.
	Listen(address string, port int) (net.Listener, error)
	// DialContext dials host:port, where host is an address or a DNS name.
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	// SetName sets the addresses of a DNS name.
	SetName(name string, addresses ...string)
}

// RealNetwork is the operating system's network, in a namespace with the hosts' addresses and names.
type RealNetwork struct{}

// Listen implements Network.
func (RealNetwork) Listen(address string, port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
}

// DialContext implements Network.
func (RealNetwork) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}

// SetName does nothing: the namespace was created with its names.
func (RealNetwork) SetName(string, ...string) {}

// Address returns the IPv4 address of the n-th host, from 1.
func Address(n int) string { return fmt.Sprintf("10.9.%d.%d", (n-1)/250, (n-1)%250+1) }

// DNSName returns the DNS name of the n-th host, if the host has one.
func DNSName(n int) string { return fmt.Sprintf("instance-%d.example.com", n) }

// dialAPI dials for programs on hosts, which reach the API server under its cluster-internal name, as in a cluster.
func (r *Environment) dialAPI(ctx context.Context, network, address string) (net.Conn, error) {
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
func (r *Environment) apiName() string { return "api-int." + r.clusterDomain() }

// apiAddress is the address of the API server's internal name on hosts: the address of the cluster's load balancer.
const apiAddress = "10.9.255.254"

// hostNetwork is the network as seen by hosts: the other hosts, and the API server under its internal name.
type hostNetwork struct{ env *Environment }

// LookupHost implements fake.Network.
func (n hostNetwork) LookupHost(ctx context.Context, name string) ([]string, error) {
	if strings.EqualFold(name, n.env.apiName()) {
		return []string{apiAddress}, nil
	}
	if resolver, ok := n.env.network.(interface {
		LookupHost(ctx context.Context, name string) ([]string, error)
	}); ok {
		return resolver.LookupHost(ctx, name)
	}
	return net.DefaultResolver.LookupHost(ctx, name)
}

// DialContext implements fake.Network.
func (n hostNetwork) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if host, _, err := net.SplitHostPort(address); err == nil && (host == apiAddress || address == n.env.apiAddress) {
		return new(net.Dialer).DialContext(ctx, network, n.env.apiAddress)
	}
	return n.env.network.DialContext(ctx, network, address)
}
