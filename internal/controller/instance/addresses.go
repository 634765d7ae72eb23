package instance

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// addresses detects that a host has moved. The kubelet of a host with a new address keeps reporting the former
// address, and reports Ready. Only a connection shows the location of the host, and the pinned host key
// identifies the host.
type addresses struct {
	// lookUp resolves a DNS name; nil disables the detection.
	lookUp func(ctx context.Context, name string) ([]string, error)
	// jitter returns a number in [0,1).
	jitter func() float64
}

const (
	// nameRecheck is the interval between lookups of the DNS name of a host in service.
	nameRecheck = 10 * time.Minute
)

// moved reports whether the address of an instance resolves to an IP address other than the last one used. A name
// server that does not respond is not a move. An address that cannot belong to a host is only considered if the
// name has no other address, as in the dialer. The operator then reports the address.
func (a addresses) moved(s *scope.Scope) (bool, *result.Result) {
	instance, host := s.Instance, s.Instance.Status.Host
	if host == nil || host.LastReachedAddress == "" {
		return false, nil
	}
	if !named(instance) {
		return instance.Spec.Address != host.LastReachedAddress, nil
	}
	if s.Session.Moved {
		return true, nil
	}
	if a.lookUp == nil || s.Host.MidWork(hostjobs.KindResolve) {
		return false, nil
	}
	present, pending, err := s.Host.LookUp(a.lookUp)
	if pending != nil || err != nil {
		return false, pending
	}
	usable := slices.DeleteFunc(slices.Clone(present), func(text string) bool {
		address, err := netip.ParseAddr(text)
		return err == nil && nodename.NoHostAt(address.Unmap().WithZone(""), s.Cluster) != ""
	})
	if len(usable) == 0 {
		usable = present
	}
	s.Session.Moved = len(usable) > 0 && !slices.Contains(usable, host.LastReachedAddress)
	return s.Session.Moved, nil
}

// nextLook returns the delay before the next lookup of the instance's name; zero for an IP address. The lookups
// of many names are spread.
func (a addresses) nextLook(instance *v1alpha1.WindowsInstance) time.Duration {
	if !named(instance) || a.lookUp == nil {
		return 0
	}
	return nameRecheck + time.Duration(a.jitter()*float64(nameRecheck)/4)
}

// named reports whether the host is reached by a DNS name.
func named(instance *v1alpha1.WindowsInstance) bool {
	_, err := netip.ParseAddr(instance.Spec.Address)
	return err != nil
}
