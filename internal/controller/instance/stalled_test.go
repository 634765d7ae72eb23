package instance

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/internal/remote"
)

// Networks of hosts that accept logins. Hosts in stalledNetwork send nothing after that.
const (
	stalledNetwork = "10.77."
	healthyNetwork = "10.2."
)

// sshNetwork is a network of SSH servers with separate host keys.
type sshNetwork struct {
	t        *testing.T
	listener net.Listener

	mu              sync.Mutex
	stalled         int            // connections of stalled hosts
	sessionRequests map[string]int // session requests to healthy hosts, by address
}

func newSSHNetwork(t *testing.T) *sshNetwork {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return &sshNetwork{t: t, listener: listener, sessionRequests: map[string]int{}}
}

// dialAddress connects to the host of an address, one at a time. The end of the connection stops its server.
func (n *sshNetwork) dialAddress(ctx context.Context, network, address string) (net.Conn, error) {
	near, err := new(net.Dialer).DialContext(ctx, network, n.listener.Addr().String())
	if err != nil {
		return nil, err
	}
	far, err := n.listener.Accept()
	if err != nil {
		return nil, errors.Join(err, near.Close())
	}
	_, key := newPrivateKey(n.t)
	config := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return &ssh.Permissions{}, nil }}
	config.AddHostKey(key.Signer())
	go n.serveConnection(far, config, address)
	return near, nil
}

func (n *sshNetwork) serveConnection(raw net.Conn, config *ssh.ServerConfig, address string) {
	defer func() { _ = raw.Close() }()
	conn, channels, requests, err := ssh.NewServerConn(raw, config)
	if err != nil {
		return
	}
	if strings.HasPrefix(address, stalledNetwork) {
		if offered := <-channels; offered != nil { // wait for a session
			n.updateCounts(func() { n.stalled++ })
			_ = conn.Wait()
			n.updateCounts(func() { n.stalled-- })
		}
		return
	}
	go ssh.DiscardRequests(requests)
	for channel := range channels {
		n.updateCounts(func() { n.sessionRequests[address]++ })
		_ = channel.Reject(ssh.Prohibited, "no sessions") // fails at once
	}
}

func (n *sshNetwork) updateCounts(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

// lockedCondition returns a condition that is evaluated under the lock.
func (n *sshNetwork) lockedCondition(condition func() bool) func() bool {
	return func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return condition()
	}
}

// Hosts that stall after the login delay the first contact with other hosts until the unopened sessions time out.
// Nodes in service are not delayed.
func TestFirstContact_StalledHostsDoNotBlockNodes(t *testing.T) {
	const healthyHosts = 50
	x, n := newTarpits(t), newSSHNetwork(t)
	x.answers = n
	haveCommands := func(addresses []string) func() bool {
		return n.lockedCondition(func() bool {
			for _, address := range addresses {
				if n.sessionRequests[address+":22"] == 0 {
					return false
				}
			}
			return true
		})
	}
	x.addInstances(stalledNetwork, maxFirstContacts, "")
	x.awaitCondition("all of them have stalled", n.lockedCondition(func() bool { return n.stalled == maxFirstContacts }))
	healthy := x.addInstances(healthyNetwork, healthyHosts, "")
	x.awaitCondition("nodes are asked at once", haveCommands(x.addInstances("10.1.", 5, "1.2.3")))
	if n.lockedCondition(func() bool { return n.sessionRequests[healthy[0]+":22"] > 0 })() {
		t.Fatal("there are more first contacts at once than there may be")
	}
	x.clock.Step(remote.DefaultExecStartTimeout)
	x.awaitCondition("all healthy hosts are asked after that", haveCommands(healthy))
	x.awaitCondition("the stalled ones are given up", n.lockedCondition(func() bool { return n.stalled == 0 }))
}
