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
	// dialLimit is the timeout of a TCP connection that only resolves the address of a name.
	dialLimit = 10 * time.Second
	// lookUpLimit is the timeout of a name server query.
	lookUpLimit = 5 * time.Second
)

// Resolve connects to the host's name and returns the IP address of the connection, or "" if the connection
// fails. Nothing is sent.
func (h *Host) Resolve(dial Dial) (string, *result.Result, error) {
	address := net.JoinHostPort(h.wanted.Address, strconv.Itoa(remote.DefaultPort))
	return Do(h, Key{KindResolve, address}, working(v1alpha1.ConditionReachable, ""), func(ctx context.Context, _ *Handle) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, dialLimit)
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

// LookUp returns the addresses of the host's DNS name.
func (h *Host) LookUp(lookUp func(context.Context, string) ([]string, error)) ([]string, *result.Result, error) {
	name := h.wanted.Address
	return Do(h, Key{KindResolve, strings.ToLower(name)}, working(v1alpha1.ConditionReachable, ""), func(ctx context.Context, _ *Handle) ([]string, error) {
		ctx, cancel := context.WithTimeout(ctx, lookUpLimit)
		defer cancel()
		return lookUp(ctx, name)
	})
}
