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

// addressWatcher detects that a host has moved. The kubelet of a host with a new address keeps reporting the former
// address, and reports Ready. Only a connection shows the location of the host, and the pinned host key
// identifies the host.
type addressWatcher struct {
	// lookUp resolves a DNS name; nil disables the detection for DNS names.
	lookUp func(ctx context.Context, name string) ([]string, error)
	// jitter returns a number in [0,1).
	jitter func() float64
}

const (
	// dnsRecheckInterval is the interval between lookups of the DNS name of a host in service.
	dnsRecheckInterval = 10 * time.Minute
)

// hasMoved reports whether the address of an instance resolves to an IP address other than the last one used. A
// failed lookup does not count as a move. An address that cannot belong to a host is only considered if the name has
// no other address, as in the dialer. The operator then reports the address.
func (a addressWatcher) hasMoved(s *scope.Scope) (bool, *result.Result) {
	instance, host := s.Instance, s.Instance.Status.Host
	if host == nil || host.LastReachedAddress == "" {
		return false, nil
	}
	if !hasDNSName(instance) {
		return instance.Spec.Address != host.LastReachedAddress, nil
	}
	if s.Session.AddressChanged {
		return true, nil
	}
	if a.lookUp == nil || s.Host.HasOutcomeExcept(hostjobs.KindResolve) {
		return false, nil
	}
	present, pending, err := s.Host.ResolveName(a.lookUp)
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
	s.Session.AddressChanged = len(usable) > 0 && !slices.Contains(usable, host.LastReachedAddress)
	return s.Session.AddressChanged, nil
}

// nextResolveDelay returns the delay before the next lookup of the instance's name; zero for an IP address. The lookups
// of many names are spread.
func (a addressWatcher) nextResolveDelay(instance *v1alpha1.WindowsInstance) time.Duration {
	if !hasDNSName(instance) || a.lookUp == nil {
		return 0
	}
	return dnsRecheckInterval + time.Duration(a.jitter()*float64(dnsRecheckInterval)/4)
}

// hasDNSName reports whether the host is reached by a DNS name.
func hasDNSName(instance *v1alpha1.WindowsInstance) bool {
	_, err := netip.ParseAddr(instance.Spec.Address)
	return err != nil
}
