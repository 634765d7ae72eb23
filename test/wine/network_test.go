package wine_test

import (
	"net"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/lab/wine"
	"github.com/windows-machine-config/wmco/lab/winetestenv"
)

// nodeName returns the name of a host's Node.
func nodeName(h *wine.Host) string { return strings.ToLower(h.Name()) }

// forwardAPIServer makes the API server reachable for hosts at an address of their network until the end of the test.
func forwardAPIServer(t *testing.T, address, server string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	requireNoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go winetestenv.Forward(listener, strings.TrimPrefix(server, "https://"))
}

// addressOf returns the address of a host.
func addressOf(h *wine.Host) string {
	address, _, _ := net.SplitHostPort(h.Address())
	return address
}
