//go:build windows

package windows

import (
	"context"
	"net"
)

// outbound implements host.Outbound. GetAddrInfoW, which Windows' own programs also call, resolves names with the
// hosts file and with the cache and policies of the DNS client. Connections use ConnectEx of Winsock. Package net
// uses both functions on Windows.
type outbound struct{}

func (outbound) LookupHost(ctx context.Context, name string) (addresses []string, err error) {
	return lookupHost(ctx, net.DefaultResolver, name)
}

func (outbound) Connect(ctx context.Context, address string) error {
	return connectTCP(ctx, new(net.Dialer), address)
}
