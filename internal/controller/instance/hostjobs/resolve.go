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
	// dialLimit is how long a TCP connection may take that only shows which address a name has.
	dialLimit = 10 * time.Second
	// lookUpLimit is how long a name server may take to answer.
	lookUpLimit = 5 * time.Second
)

// Resolve returns the IP address to which the host's name leads those that connect to it: nothing is sent. "" if it cannot be
// connected to.
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
