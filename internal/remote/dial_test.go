package remote_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/remote"
)

// network is a network of addresses that answer, refuse connections or drop packets.
type network struct {
	silent, refusing []string

	mu     sync.Mutex
	dialed []string
}

func (n *network) addressesDialed() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.dialed)
}

func (n *network) dialAddress(ctx context.Context, _, address string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(address)
	n.mu.Lock()
	n.dialed = append(n.dialed, host)
	n.mu.Unlock()
	switch {
	case slices.Contains(n.silent, host):
		<-ctx.Done()
		return nil, ctx.Err()
	case slices.Contains(n.refusing, host):
		return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	near, far := net.Pipe() // the SSH handshake fails, which is irrelevant here
	return near, far.Close()
}

func resolvesTo(addresses ...string) func(context.Context, string) ([]string, error) {
	return func(context.Context, string) ([]string, error) { return addresses, nil }
}

func podsAndServices(address netip.Addr) string {
	if netip.MustParsePrefix("10.132.0.0/14").Contains(address) || address.IsLoopback() {
		return "in the network of Windows pods"
	}
	return ""
}

//
func TestDial_AddressesTriedInOrder(t *testing.T) {
	for name, c := range map[string]struct {
		addresses, refusing []string
		lastReachedAddress  string
		dialed              []string
	}{
		"the first that answers is enough":           {addresses: []string{"10.0.0.7", "10.0.0.8"}, dialed: []string{"10.0.0.7"}},
		"after one that refuses comes the next":      {addresses: []string{"10.0.0.7", "10.0.0.8"}, refusing: []string{"10.0.0.7"}, dialed: []string{"10.0.0.7", "10.0.0.8"}},
		"one in the pods' network is left out":       {addresses: []string{"10.132.0.2", "10.0.0.8"}, dialed: []string{"10.0.0.8"}},
		"one of this machine is left out":            {addresses: []string{"10.0.0.8", "::1"}, refusing: []string{"10.0.0.8"}, dialed: []string{"10.0.0.8"}},
		"that of the last connection comes first":    {addresses: []string{"10.0.0.7", "10.0.0.8"}, lastReachedAddress: "10.0.0.8", dialed: []string{"10.0.0.8"}},
		"a former one that the name lost is not one": {addresses: []string{"10.0.0.7"}, lastReachedAddress: "10.0.0.9", dialed: []string{"10.0.0.7"}},
		"a former one is not used when it is forbidden": {addresses: []string{"10.0.0.7", "10.132.0.2"}, lastReachedAddress: "10.132.0.2",
			dialed: []string{"10.0.0.7"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := &network{refusing: c.refusing}
			d := &remote.Dialer{Dial: n.dialAddress, LookUp: resolvesTo(c.addresses...)}
			_, err := d.Connect(t.Context(), remote.Target{Address: "win.example.com", User: "Administrator",
				Key: newKey(t), NoHostAt: podsAndServices, LastReachedAddress: c.lastReachedAddress})
			if dialed := n.addressesDialed(); err == nil || !slices.Equal(dialed, c.dialed) {
				t.Errorf("dialed were %v, want %v (%v)", dialed, c.dialed, err)
			}
		})
	}
}

// a DNS record of a network card that the cluster cannot reach must not make the host unreachable.
func TestDial_SilentAddressLeavesTimeForNext(t *testing.T) {
	noLeaks(t)
	d, clock := fakeDialer()
	n := &network{silent: []string{"10.0.0.7"}}
	d.Dial, d.LookUp = n.dialAddress, resolvesTo("10.0.0.7", "10.0.0.8")
	wait := inBackground(func() error {
		_, err := d.Connect(t.Context(), remote.Target{Address: "win.example.com", Key: newKey(t)})
		return err
	})
	waitFor(t, "the first address to be dialed", func() bool { return len(n.addressesDialed()) == 1 })
	clock.passTimer(dialTimeout / 2)
	err := wait()
	if dialed := n.addressesDialed(); !slices.Equal(dialed, []string{"10.0.0.7", "10.0.0.8"}) {
		t.Errorf("dialed were %v (%v)", dialed, err)
	}
}

func TestDial_SilentAddressesShareOneTimeout(t *testing.T) {
	noLeaks(t)
	d, clock := fakeDialer()
	n := &network{silent: []string{"10.0.0.7", "10.0.0.8"}}
	d.Dial, d.LookUp = n.dialAddress, resolvesTo("10.0.0.8", "10.0.0.7")
	before := clock.Now()
	wait := inBackground(func() error {
		_, err := d.Connect(t.Context(), remote.Target{Address: "win.example.com", Key: newKey(t)})
		return err
	})
	clock.passTimer(dialTimeout / 2)
	clock.passTimer(dialTimeout / 2)
	err := wait()
	expectError(t, err, remote.ReasonConnectionTimedOut, "no response on TCP port 22 of 10.0.0.7 or 10.0.0.8")
	if elapsed := clock.Since(before); elapsed != dialTimeout {
		t.Errorf("it took %s", elapsed)
	}
}

// A message that differs at each attempt would be written to the status each time.
func TestDial_SilentHostMessageIsStable(t *testing.T) {
	for name, address := range map[string]string{"an address": "10.0.0.7", "a DNS name": "win.example.com"} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			n := &network{silent: []string{"10.0.0.7"}}
			// The real clock advances between two statements.
			d := &remote.Dialer{Dial: n.dialAddress, LookUp: resolvesTo("10.0.0.7"), Limits: remote.Limits{DialTimeout: 250 * time.Millisecond}}
			for range 2 {
				_, err := d.Connect(t.Context(), remote.Target{Address: address, Key: newKey(t)})
				expectError(t, err, remote.ReasonConnectionTimedOut, "(waited 250ms for a TCP connection to port 22)")
			}
		})
	}
}

func TestDial_MessageIndependentOfAddressOrder(t *testing.T) {
	const refusing, silent = "10.0.0.8", "10.0.0.7"
	for name, c := range map[string]struct {
		addresses []string
		limit     time.Duration // of the silent address
	}{
		"the silent one first":   {[]string{silent, refusing}, dialTimeout / 2},
		"the refusing one first": {[]string{refusing, silent}, dialTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			d, clock := fakeDialer()
			n := &network{silent: []string{silent}, refusing: []string{refusing}}
			d.Dial, d.LookUp = n.dialAddress, resolvesTo(c.addresses...)
			wait := inBackground(func() error {
				_, err := d.Connect(t.Context(), remote.Target{Address: "win.example.com", Key: newKey(t)})
				return err
			})
			clock.awaitTimer(dialTimeout) // timeout of the name server
			clock.passTimer(c.limit)
			expectError(t, wait(), remote.ReasonUnreachable, "no TCP connection to port 22 of 10.0.0.7 or 10.0.0.8 (connect: connection refused)")
		})
	}
}

func TestDial_SilentNameServerTimesOut(t *testing.T) {
	noLeaks(t)
	d, clock := fakeDialer()
	d.Dial = (&network{}).dialAddress
	d.LookUp = func(ctx context.Context, _ string) ([]string, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	wait := inBackground(func() error {
		_, err := d.Connect(t.Context(), remote.Target{Address: "win.example.com", Key: newKey(t)})
		return err
	})
	clock.passTimer(dialTimeout)
	expectError(t, wait(), remote.ReasonNameNotResolved, "the DNS name does not resolve")
}

func TestDial_FailedLookupNotDialed(t *testing.T) {
	for name, lookup := range map[string]func(context.Context, string) ([]string, error){
		"no addresses":             resolvesTo(),
		"an error of another kind": func(context.Context, string) ([]string, error) { return nil, errors.New("no network") },
		"a name that does not exist": func(context.Context, string) ([]string, error) {
			return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := &network{}
			d := &remote.Dialer{Dial: n.dialAddress, LookUp: lookup}
			_, err := d.Connect(t.Context(), remote.Target{Address: "win.example.com", Key: newKey(t)})
			expectError(t, err, remote.ReasonNameNotResolved, "host win.example.com", "the DNS name does not resolve")
			if dialed := n.addressesDialed(); len(dialed) > 0 {
				t.Errorf("dialed were %v", dialed)
			}
		})
	}
}

func TestDial_NameWithoutUsableAddressRejected(t *testing.T) {
	n := &network{}
	d := &remote.Dialer{Dial: n.dialAddress, LookUp: resolvesTo("127.0.0.1", "10.132.0.2")}
	_, err := d.Connect(t.Context(), remote.Target{Address: "win.example.com", Key: newKey(t), NoHostAt: podsAndServices})
	expectError(t, err, remote.ReasonAddressNotAllowed, "the name resolves to 10.132.0.2", "Windows pods")
	if dialed := n.addressesDialed(); len(dialed) > 0 {
		t.Errorf("dialed were %v", dialed)
	}
}
