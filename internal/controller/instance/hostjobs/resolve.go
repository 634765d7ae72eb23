package hostjobs

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/remote"
)

const (
	// dialTimeout is the timeout of a TCP connection that only resolves the address of a name.
	dialTimeout = 10 * time.Second
	// dnsTimeout is the timeout of a name server query.
	dnsTimeout = 5 * time.Second
)

// Resolve connects to the host's name and returns the IP address of the connection, or "" if the connection
// fails. Nothing is sent.
func (h *Host) Resolve(dial Dial) (string, *result.Result, error) {
	address := net.JoinHostPort(h.desired.Address, strconv.Itoa(remote.DefaultPort))
	return Do(h, Key{KindResolve, address}, workingResult(v1alpha1.ConditionReachable, ""), func(ctx context.Context, _ *Handle) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		connection, err := dial(ctx, "tcp", address)
		if err != nil {
			return "", err
		}
		defer func() { _ = connection.Close() }() // nothing was sent
		found, _, err := net.SplitHostPort(connection.RemoteAddr().String())
		return found, err
	})
}

// ResolveName returns the addresses of the host's DNS name.
func (h *Host) ResolveName(lookUp func(context.Context, string) ([]string, error)) ([]string, *result.Result, error) {
	name := h.desired.Address
	return Do(h, Key{KindResolve, strings.ToLower(name)}, workingResult(v1alpha1.ConditionReachable, ""), func(ctx context.Context, _ *Handle) ([]string, error) {
		ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
		defer cancel()
		return lookUp(ctx, name)
	})
}
