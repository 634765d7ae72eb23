package winhost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"
)

// Network is a separate network inside the process, with its own addresses and names. Each listener is a real one on
// loopback, reached under the requested address. The network responds like a network of real hosts.
type Network struct {
	mu        sync.Mutex
	addresses map[string]bool             // that a host has, whether it listens or not
	listeners map[string]*networkListener // by address:port
	unplugged map[string]chan struct{}    // by address; closed when the host is plugged in again
	names     map[string][]string         // addresses of a DNS name
	pointers  map[string][]string         // PTR records of an address
}

// NewNetwork creates an empty network.
func NewNetwork() *Network {
	return &Network{
		addresses: map[string]bool{}, listeners: map[string]*networkListener{}, unplugged: map[string]chan struct{}{},
		names: map[string][]string{}, pointers: map[string][]string{},
	}
}

// Listen opens a port of an address. Remote ends see exactly this address.
func (n *Network) Listen(address string, port int) (net.Listener, error) {
	key := net.JoinHostPort(address, strconv.Itoa(port))
	ip := net.ParseIP(address)
	if ip == nil {
		return nil, fmt.Errorf("listen on %s: not an IP address", key)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[key] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: &net.TCPAddr{IP: ip, Port: port},
			Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}
	}
	loopback, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("listen for %s on loopback: %w", key, err)
	}
	listener := &networkListener{TCPListener: loopback, network: n, key: key, address: &net.TCPAddr{IP: ip, Port: port}}
	n.addresses[address] = true
	n.listeners[key] = listener
	return listener, nil
}

// DialContext dials host:port, where host is an address or a name of this network. An unknown address is unreachable,
// a port without a listener refuses the connection, and an unplugged host does not respond.
func (n *Network) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	addresses, err := n.LookupHost(ctx, host)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	var failures []error
	for _, ip := range addresses {
		conn, err := n.dialAddress(ctx, network, ip, port)
		if err == nil {
			return conn, nil
		}
		failures = append(failures, err)
	}
	return nil, failures[0] // as package net does
}

func (n *Network) dialAddress(ctx context.Context, network, ip, port string) (net.Conn, error) {
	number, _ := strconv.Atoi(port) // an invalid port has no listener
	remote := &net.TCPAddr{IP: net.ParseIP(ip), Port: number}
	failed := func(err error) error { return &net.OpError{Op: "dial", Net: network, Addr: remote, Err: err} }
	for {
		n.mu.Lock()
		listener, known, unplugged := n.listeners[net.JoinHostPort(ip, port)], n.addresses[ip], n.unplugged[ip]
		n.mu.Unlock()
		switch {
		case unplugged != nil:
			select {
			case <-unplugged:
				continue
			case <-ctx.Done():
				return nil, failed(timeoutError(ctx))
			}
		case !known:
			return nil, failed(os.NewSyscallError("connect", syscall.EHOSTUNREACH))
		case listener == nil:
			return nil, failed(os.NewSyscallError("connect", syscall.ECONNREFUSED))
		}
		var dialer net.Dialer
		conn, err := dialer.DialTCP(ctx, "tcp", netip.AddrPort{}, listener.loopbackAddress())
		if err != nil {
			return nil, failed(errors.Unwrap(err))
		}
		return networkConn{TCPConn: conn, local: conn.LocalAddr(), remote: remote}, nil
	}
}

// timeoutError returns the error of a dial without a response in time.
func timeoutError(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return os.ErrDeadlineExceeded
	}
	return ctx.Err()
}

// Unplug disconnects a host from the network: dials wait, as if packets were lost. Existing connections stay open.
func (n *Network) Unplug(address string) (plug func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.unplugged[address] == nil {
		n.unplugged[address] = make(chan struct{})
	}
	unplugged := n.unplugged[address]
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.unplugged[address] == unplugged {
			delete(n.unplugged, address)
			close(unplugged)
		}
	}
}

// RemoveAddress removes an address without listeners, which is unreachable again.
func (n *Network) RemoveAddress(address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.addresses, address)
}

type networkListener struct {
	*net.TCPListener
	network *Network
	key     string
	address net.Addr
}

func (l *networkListener) loopbackAddress() netip.AddrPort {
	address, _ := netip.ParseAddrPort(l.TCPListener.Addr().String()) // package net wrote it
	return address
}

// Addr returns the address in the network.
func (l *networkListener) Addr() net.Addr { return l.address }

// Accept implements net.Listener.
func (l *networkListener) Accept() (net.Conn, error) {
	conn, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return networkConn{TCPConn: conn, local: l.address, remote: conn.RemoteAddr()}, nil
}

// Close releases the port.
func (l *networkListener) Close() error {
	l.network.mu.Lock()
	if l.network.listeners[l.key] == l {
		delete(l.network.listeners, l.key)
	}
	l.network.mu.Unlock()
	return l.TCPListener.Close()
}

// networkConn is a real connection that shows the network's addresses.
type networkConn struct {
	*net.TCPConn
	local, remote net.Addr
}

// LocalAddr implements net.Conn.
func (c networkConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c networkConn) RemoteAddr() net.Addr { return c.remote }
