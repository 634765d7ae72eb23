package winhost

import (
	"context"
	"net"
	"slices"
	"strings"
)

// SetName sets the addresses of a DNS name; without addresses, it removes the name.
func (n *Network) SetName(name string, addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	setRecords(n.names, canonicalName(name), addresses)
}

// SetPointer sets the PTR records of an address; without names, it removes the records.
func (n *Network) SetPointer(address string, names ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	setRecords(n.pointers, address, names)
}

func setRecords(records map[string][]string, key string, values []string) {
	delete(records, key)
	if len(values) > 0 {
		records[key] = slices.Clone(values)
	}
}

// LookupHost returns the addresses of a name like (*net.Resolver).LookupHost. An address is its own name.
func (n *Network) LookupHost(ctx context.Context, name string) ([]string, error) {
	if net.ParseIP(name) != nil {
		return []string{name}, nil
	}
	return n.lookupRecords(ctx, n.names, canonicalName(name), name)
}

// LookupAddr returns the names of an address like (*net.Resolver).LookupAddr.
func (n *Network) LookupAddr(ctx context.Context, address string) ([]string, error) {
	return n.lookupRecords(ctx, n.pointers, address, address)
}

func (n *Network) lookupRecords(ctx context.Context, records map[string][]string, key, name string) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, &net.DNSError{UnwrapErr: err, Err: err.Error(), Name: name}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if found := records[key]; len(found) > 0 {
		return slices.Clone(found), nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// canonicalName returns a DNS name in the form used for comparisons.
func canonicalName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
