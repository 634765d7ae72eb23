package instance

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// addresses notices that a host has moved: the kubelet of a host that has another address keeps reporting the former
// one, and reports Ready. Only a connection tells where the host is, and its pinned host key whether it is the same.
type addresses struct {
	// lookUp resolves a DNS name; nil means that nobody looks.
	lookUp func(ctx context.Context, name string) ([]string, error)
	// jitter returns a number in [0,1).
	jitter func() float64
}

const (
	// lookUpLimit is how long a name server may take to answer.
	lookUpLimit = 5 * time.Second
	// nameRecheck is how often the DNS name of a host in service is looked up.
	nameRecheck = 10 * time.Minute
)

// moved reports whether the address of an instance leads to another IP address than the one at which its host was
// reached last. A name server that does not answer moves nothing. An address that cannot belong to a host counts only if
// the name has no other one, as for the dialer: the operator then reports it.
func (a addresses) moved(ctx context.Context, instance *v1alpha1.WindowsInstance, cluster nodespec.Cluster) bool {
	host := instance.Status.Host
	if host == nil || host.ReachedAt == "" {
		return false
	}
	if !named(instance) {
		return instance.Spec.Address != host.ReachedAt
	}
	if a.lookUp == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, lookUpLimit)
	defer cancel()
	present, err := a.lookUp(ctx, instance.Spec.Address)
	if err != nil {
		log.FromContext(ctx).V(1).Info("the host's name was not looked up", "name", instance.Spec.Address,
			"reason", err.Error())
		return false
	}
	usable := slices.DeleteFunc(slices.Clone(present), func(text string) bool {
		address, err := netip.ParseAddr(text)
		return err == nil && nodename.NoHostAt(address.Unmap().WithZone(""), cluster) != ""
	})
	if len(usable) == 0 {
		usable = present
	}
	return len(usable) > 0 && !slices.Contains(usable, host.ReachedAt)
}

// nextLook returns when the instance is to be looked at again because its name may lead elsewhere; zero for an IP
// address. The looks at many names are spread.
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
