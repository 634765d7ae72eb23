package windows

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/windows-machine-config/wmco/internal/host"
)

// lookupHost returns the addresses of a name, starting with IPv4.
func lookupHost(ctx context.Context, resolver *net.Resolver, name string) ([]string, error) {
	found, err := resolver.LookupNetIP(ctx, "ip", name)
	var missing *net.DNSError
	switch {
	case errors.As(err, &missing) && missing.IsNotFound:
		return nil, fmt.Errorf("%w: %w", err, host.ErrNotExist)
	case err != nil:
		return nil, err // already contains the name
	}
	var addresses, version6 []string
	for _, address := range found {
		if address = address.Unmap(); address.Is4() {
			addresses = append(addresses, address.String())
		} else {
			version6 = append(version6, address.String())
		}
	}
	return append(addresses, version6...), nil
}

// connectTCP opens and closes a connection. It rejects names, because only lookupHost resolves names.
func connectTCP(ctx context.Context, dialer *net.Dialer, address string) error {
	if _, err := netip.ParseAddrPort(address); err != nil {
		return fmt.Errorf("connect to %s: %w", address, err)
	}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err // already contains the address
	}
	return connection.Close()
}
