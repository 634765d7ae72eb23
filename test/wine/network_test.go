package wine_test

import (
	"net"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/lab/wine"
	"github.com/windows-machine-config/wmco/lab/winerig"
)

// nodeName returns the name of a host's Node.
func nodeName(h *wine.Host) string { return strings.ToLower(h.Name()) }

// forward makes the API server reachable for hosts at an address of their network until the end of the test.
func forward(t *testing.T, address, server string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go winerig.Forward(listener, strings.TrimPrefix(server, "https://"))
}

// address returns the address of a host.
func address(h *wine.Host) string {
	address, _, _ := net.SplitHostPort(h.Address())
	return address
}
