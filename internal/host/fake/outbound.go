package fake

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Network resolves names and connects outside of a machine. *net.Resolver and *net.Dialer have such methods.
type Network interface {
	// LookupHost returns the addresses of a name.
	LookupHost(ctx context.Context, name string) ([]string, error)
	// DialContext connects to address:port.
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Silence drops all answers from a name's servers or from an address, as if the packets were lost, until restore is
// called.
func (m *Machine) Silence(nameOrAddress string) (restore func()) {
	m.lock()
	defer m.unlock()
	of := foldCase(nameOrAddress)
	silence := make(chan struct{})
	m.silent[of] = silence
	return func() {
		m.lock()
		defer m.unlock()
		if m.silent[of] == silence {
			delete(m.silent, of)
			close(silence)
		}
	}
}

// outbound implements host.Outbound for one process.
type outbound struct{ p *Process }

func (o outbound) LookupHost(ctx context.Context, name string) ([]string, error) {
	failed := func(err error) error { return fmt.Errorf("resolve %s: %w", name, err) }
	var known []string
	err := o.p.runOperation(ctx, "Outbound", "LookupHost", name, func(m *Machine) error {
		switch {
		case strings.EqualFold(name, "localhost"):
			known = []string{"127.0.0.1"}
		case strings.EqualFold(name, m.name):
			known = slices.Clone(m.options.Addresses)
		case m.options.Network == nil:
			return failed(errNoHost)
		}
		return nil
	})
	if err != nil || known != nil {
		return known, err
	}
	ctx, cancel := o.p.processContext(ctx)
	defer cancel()
	if err := o.awaitAnswer(ctx, name); err != nil {
		return nil, failed(err)
	}
	addresses, err := o.p.Machine.options.Network.LookupHost(ctx, name)
	var missing *net.DNSError
	if errors.As(err, &missing) && missing.IsNotFound {
		err = errNoHost
	}
	if err != nil {
		return nil, failed(err)
	}
	return addresses, nil
}

func (o outbound) Connect(ctx context.Context, address string) error {
	failed := func(err error) error { return fmt.Errorf("connect to %s: %w", address, err) }
	ip, portText, err := net.SplitHostPort(address)
	if err != nil || net.ParseIP(ip) == nil {
		return failed(errParameter)
	}
	own := false
	err = o.p.runOperation(ctx, "Outbound", "Connect", address, func(m *Machine) error {
		port, _ := strconv.Atoi(portText) // nothing listens on an invalid port
		loopback := net.ParseIP(ip).IsLoopback()
		own = loopback && m.local[port] != nil
		switch {
		case own || m.options.Network != nil: // programs of the machine may also use the network's loopback
			return nil
		case loopback:
			return failed(errRefused)
		}
		return failed(errNoRoute)
	})
	if err != nil || own {
		return err
	}
	ctx, cancel := o.p.processContext(ctx)
	defer cancel()
	if err := o.awaitAnswer(ctx, ip); err != nil {
		return failed(err)
	}
	connection, err := o.p.Machine.options.Network.DialContext(ctx, "tcp", address)
	if err != nil {
		return failed(err)
	}
	return connection.Close()
}

// awaitAnswer waits while a name or address is silent.
func (o outbound) awaitAnswer(ctx context.Context, of string) error {
	m := o.p.Machine
	m.lock()
	silence := m.silent[foldCase(of)]
	m.unlock()
	if silence == nil {
		return nil
	}
	select {
	case <-silence:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
