package fake

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
)

// podNetwork is host.PodNetwork for one process.
type podNetwork struct{ p *Process }

func (n podNetwork) Connect(ctx context.Context, network, address, provider string) error {
	failed := func(err error) error { return fmt.Errorf("connect to %s from network %s: %w", address, network, err) }
	if _, err := netip.ParseAddrPort(address); err != nil {
		return failed(errParameter)
	}
	var silence chan struct{}
	err := n.p.do(ctx, "PodNetwork", "Connect", address, func(m *Machine) error {
		if err := m.hns(); err != nil {
			return failed(err)
		}
		if !slices.Contains(m.options.Addresses, provider) {
			return failed(fmt.Errorf("%s is no address of this machine", provider))
		}
		i := m.network(network)
		if i < 0 {
			return failed(fmt.Errorf("HNS network %s: %w", network, host.ErrNotExist))
		}
		if _, err := m.freeAddress(m.networks[i]); err != nil {
			return failed(err)
		}
		silence = m.silent[key(podKey(address))]
		return nil
	})
	if err != nil {
		return err
	}
	ctx, cancel := n.p.lasting(ctx)
	defer cancel()
	if silence != nil {
		select {
		case <-silence:
		case <-ctx.Done():
			return failed(context.Cause(ctx))
		}
	}
	if connect := n.p.Machine.options.ConnectPod; connect != nil {
		if err := connect(ctx, network, address); err != nil {
			return failed(err)
		}
	}
	return nil
}

func podKey(address string) string { return "pod " + address }

// PodsCannotReach lets pods get no answer from a port of an address (172.30.0.1:443), as if the packets were lost,
// until it is mended.
func (m *Machine) PodsCannotReach(address string) (mend func()) { return m.Silence(podKey(address)) }
