package bench

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/sshkey"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

const (
	transferAddress = "10.9.9.9"
	transferUser    = "Administrator"
	sshPort         = 22
	// packet is how much an SFTP client sends at once, and waits for the answer to if it does not send ahead.
	packet = 32 << 10
)

// goods are what each host gets.
type goods struct {
	payload *payload.Payload
	files   []payload.File // all, the agent's among them
	agent   payload.File
	others  []string // sha256 of all but the agent
}

// receiver is a host that only takes files.
type receiver struct {
	roundTrip time.Duration
	clock     clock.WithTicker
	key       sshkey.Key
	network   *winhost.Network
	machine   *fake.Machine
	host      *winhost.Host
}

// startReceiver boots a host at a distance.
func startReceiver(ctx context.Context, clock clock.WithTicker, roundTrip time.Duration) (*receiver, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	r := &receiver{roundTrip: roundTrip, clock: clock, key: key, network: winhost.NewNetwork()}
	r.machine = fake.New(fake.Options{Name: "receiver", Addresses: []string{transferAddress},
		System: fake.WindowsServer2022(), Clock: clock})
	r.host = winhost.New(winhost.Options{
		Machine: r.machine, Clock: clock, Rand: rand.Reader,
		Link:           winhost.NewLink(clock, winhost.LinkProperties{RoundTrip: roundTrip}),
		Listen:         func(context.Context) (net.Listener, error) { return r.network.Listen(transferAddress, sshPort) },
		AuthorizedKeys: map[string][]ssh.PublicKey{transferUser: {key.Signer().PublicKey()}},
	})
	if err := r.host.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, fmt.Errorf("start a host to send to: %w", err)
	}
	if err := r.machine.Boot(ctx); err != nil {
		r.close()
		return nil, fmt.Errorf("boot a host to send to: %w", err)
	}
	return r, nil
}

func newKey() (sshkey.Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return sshkey.Key{}, fmt.Errorf("make an SSH key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return sshkey.Key{}, fmt.Errorf("encode an SSH key: %w", err)
	}
	return sshkey.Parse(pem.EncodeToMemory(block))
}

func (r *receiver) close() {
	r.host.Stop()
	r.machine.Close()
}

// measure runs a transfer and returns its time and the bytes that the host received.
func (r *receiver) measure(send func() error) (seconds float64, received int64, err error) {
	before, _ := r.host.Traffic()
	begin := r.clock.Now()
	err = send()
	seconds = r.clock.Since(begin).Seconds()
	after, _ := r.host.Traffic()
	return seconds, after - before, err
}

// transfer brings the same goods to two equal hosts, in the plain way and in the product's.
func transfer(ctx context.Context, clock clock.WithTicker, roundTrip time.Duration, g goods) (Transfer, error) {
	t := Transfer{RoundTrip: roundTrip, PlainPart: plainPart(g, roundTrip)}
	for _, send := range []func(context.Context, *receiver, goods, *Transfer) error{plainly, asTheOperator} {
		r, err := startReceiver(ctx, clock, roundTrip)
		if err != nil {
			return t, err
		}
		err = send(ctx, r, g, &t)
		r.close()
		if err != nil {
			return t, fmt.Errorf("transfer at %s round trip: %w", roundTrip, err)
		}
	}
	t.PlainSeconds /= t.PlainPart
	t.PlainBytes = int64(float64(t.PlainBytes) / t.PlainPart)
	return t, nil
}

// plainLimit is about how long the plain way may take.
const plainLimit = 40 * time.Second

// plainPart returns the share of the files that the plain way is measured with: each packet takes at least a round
// trip.
func plainPart(g goods, roundTrip time.Duration) float64 {
	packets := int64(0)
	for _, file := range g.files {
		packets += file.Size/packet + 1
	}
	if whole := time.Duration(packets) * roundTrip; whole > plainLimit {
		return float64(plainLimit) / float64(whole)
	}
	return 1
}

// asTheOperator sends the agent, and then the archive, with the product's own client.
func asTheOperator(ctx context.Context, r *receiver, g goods, t *Transfer) error {
	dial := &remote.Dialer{Dial: r.network.DialContext, Clock: r.clock}
	connection, err := dial.Connect(ctx, remote.Target{Instance: "receiver", Address: transferAddress,
		User: transferUser, Key: r.key})
	if err != nil {
		return err
	}
	defer connection.Close()
	var agentBytes, archiveBytes int64
	t.AgentSeconds, agentBytes, err = r.measure(func() error {
		agent := remote.Agent{SHA256: g.agent.SHA256, Size: g.agent.Size, Open: func() (io.ReadCloser, error) {
			return g.payload.Open(g.agent.SHA256)
		}}
		_, _, err := connection.EnsureAgent(ctx, agent, nil)
		return err
	})
	if err != nil {
		return err
	}
	archive, err := g.payload.Archive(g.others)
	if err != nil {
		return err
	}
	defer archive.Close()
	t.ArchiveSeconds, archiveBytes, err = r.measure(func() error {
		return connection.Send(ctx, nodespec.InboxPayload(archive.Name), archive.Reader(), nil)
	})
	t.OwnBytes = agentBytes + archiveBytes
	return err
}

// plainly sends file after file as it is, and waits for the answer to each packet.
func plainly(ctx context.Context, r *receiver, g goods, t *Transfer) error {
	conn, err := r.network.DialContext(ctx, "tcp", net.JoinHostPort(transferAddress, "22"))
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // that ends everything below
	defer stop()
	connection, channels, requests, err := ssh.NewClientConn(conn, transferAddress, &ssh.ClientConfig{
		User: transferUser, Auth: []ssh.AuthMethod{ssh.PublicKeys(r.key.Signer())},
		HostKeyCallback: ssh.InsecureIgnoreHostKey(), // a host of this process
	})
	if err != nil {
		return err
	}
	client := ssh.NewClient(connection, channels, requests)
	files, err := sftp.NewClient(client, sftp.MaxPacket(packet), sftp.UseConcurrentWrites(false))
	if err != nil {
		return err
	}
	t.PlainSeconds, t.PlainBytes, err = r.measure(func() error {
		for _, file := range g.files {
			if err := sendPlainly(files, g.payload, file, int64(t.PlainPart*float64(file.Size))); err != nil {
				return fmt.Errorf("send %s: %w", file.Path, err)
			}
		}
		return nil
	})
	return err
}

// sendPlainly sends the first bytes of a file.
func sendPlainly(client *sftp.Client, source *payload.Payload, file payload.File, size int64) (err error) {
	content, err := source.Open(file.SHA256)
	if err != nil {
		return err
	}
	defer content.Close()
	target, err := client.Create("/C:/" + file.Path[strings.LastIndexByte(file.Path, '\\')+1:])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	// Only Write, for ReadFrom might send ahead.
	_, err = io.CopyBuffer(struct{ io.Writer }{target}, struct{ io.Reader }{io.LimitReader(content, size)},
		make([]byte, packet))
	return err
}
