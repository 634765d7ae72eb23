//go:build windows

package windows

import (
	"context"
	"net"
)

// outbound is host.Outbound: names by GetAddrInfoW, which is what Windows' own programs ask, so the answer is theirs,
// with the file hosts and the DNS client's cache and policies; connections by Winsock's ConnectEx. Both are what
// package net uses on Windows.
type outbound struct{}

func (outbound) LookupHost(ctx context.Context, name string) (addresses []string, err error) {
	return lookupHost(ctx, net.DefaultResolver, name)
}

func (outbound) Connect(ctx context.Context, address string) error {
	return connectTCP(ctx, new(net.Dialer), address)
}
