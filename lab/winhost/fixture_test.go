package winhost_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

const (
	hostAddress = "10.0.0.11"
	agentPath   = `C:\k\wicd\0123456789ab\wicd.exe`
	waitTimeout = 2 * time.Minute // for operations that are immediate on an idle machine
)

// lab is one host on a separate network, with a key that may log in.
type lab struct {
	t       *testing.T
	network *winhost.Network
	machine *fake.Machine
	host    *winhost.Host
	key     ssh.Signer
}

// programs are the functions of the test's executables, by the word behind "MZ".
var programs = map[string]fake.Program{
	"print": func(_ context.Context, p *fake.Process) int { // its arguments
		_ = json.NewEncoder(p.Stdout).Encode(p.Args)
		return 0
	},
	"fail": func(_ context.Context, p *fake.Process) int {
		_, _ = fmt.Fprintln(p.Stderr, "no luck")
		return 3
	},
	"wait": func(ctx context.Context, p *fake.Process) int { // prints hello and waits for its end
		_, _ = fmt.Fprintln(p.Stdout, "hello")
		<-ctx.Done()
		return 0
	},
	"work": func(_ context.Context, p *fake.Process) int { // writes until the reader is gone, then creates a file
		for i := 0; p.Alive(); i++ {
			if _, err := fmt.Fprintln(p.Stdout, "line", i); err != nil {
				break
			}
		}
		if err := p.Host.Files.Write(context.Background(), `C:\k\done`, strings.NewReader("done"), writeOptions); err != nil {
			return 1
		}
		return 0
	},
	"reboot": func(ctx context.Context, p *fake.Process) int {
		_, _ = fmt.Fprintln(p.Stdout, "rebooting")
		_ = p.Host.Power.Reboot(ctx, "a test wants it")
		return 0
	},
}

func newLab(t *testing.T, change ...func(*winhost.Options)) *lab {
	t.Helper()
	return newLabOn(t, func(*fake.Options) {}, change...)
}

// newLabOn creates a lab on a machine with other options than the default.
func newLabOn(t *testing.T, machine func(*fake.Options), change ...func(*winhost.Options)) *lab {
	t.Helper()
	l := &lab{t: t, network: winhost.NewNetwork(), key: newKey(t, 1)}
	created := fake.Options{Name: "win-1", Addresses: []string{hostAddress},
		Programs: func(content []byte) (fake.Program, error) {
			name, _ := strings.CutPrefix(string(content), "MZ ")
			if program, ok := programs[name]; ok {
				return program, nil
			}
			return nil, errors.New("no program of this test")
		}}
	machine(&created)
	l.machine = fake.New(created)
	l.writeFile(agentPath, "MZ print")
	for name := range programs {
		l.writeFile(`C:\k\`+name+`.exe`, "MZ "+name)
	}
	options := winhost.Options{
		Machine: l.machine, Rand: rand.New(rand.NewSource(7)),
		Listen:         func(context.Context) (net.Listener, error) { return l.network.Listen(hostAddress, 22) },
		AuthorizedKeys: map[string][]ssh.PublicKey{"Administrator": {l.key.PublicKey()}},
	}
	for _, each := range change {
		each(&options)
	}
	l.host = winhost.New(options)
	requireNoError(t, l.host.Start(t.Context()))
	requireNoError(t, l.machine.Boot(t.Context()))
	t.Cleanup(func() {
		l.host.Stop()
		l.machine.Close()
	})
	return l
}

func (l *lab) writeFile(path, content string) {
	l.t.Helper()
	requireNoError(l.t, l.machine.Drive().MkdirAll(path[:strings.LastIndexByte(path, '\\')]))
	requireNoError(l.t, l.machine.Drive().WriteFile(path, []byte(content)))
}

func newKey(t *testing.T, seed byte) ssh.Signer {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize)))
	requireNoError(t, err)
	return signer
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// dialAs logs in; the error comes from the dial or from the login.
func (l *lab) dialAs(user string, key ssh.Signer) (*ssh.Client, error) {
	ctx, cancel := context.WithTimeout(l.t.Context(), waitTimeout)
	defer cancel()
	conn, err := l.network.DialContext(ctx, "tcp", hostAddress+":22")
	if err != nil {
		return nil, err
	}
	c, channels, requests, err := ssh.NewClientConn(conn, hostAddress+":22", &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	client := ssh.NewClient(c, channels, requests)
	l.t.Cleanup(func() { _ = client.Close() })
	return client, nil
}

func (l *lab) dialAdministrator() *ssh.Client {
	l.t.Helper()
	client, err := l.dialAs("Administrator", l.key)
	requireNoError(l.t, err)
	return client
}

// run runs a command line on a separate connection.
func (l *lab) run(line string) (stdout, stderr string, exitCode int) {
	l.t.Helper()
	client := l.dialAdministrator()
	defer func() { _ = client.Close() }()
	session, err := client.NewSession()
	requireNoError(l.t, err)
	var out, errs bytes.Buffer
	session.Stdout, session.Stderr = &out, &errs
	err = session.Run(line)
	var exit *ssh.ExitError
	switch {
	case errors.As(err, &exit):
		exitCode = exit.ExitStatus()
	case err != nil:
		l.t.Fatalf("run %q: %v", line, err)
	}
	return out.String(), errs.String(), exitCode
}

// awaitMachine waits until the machine, or its journal, meets the condition.
func (l *lab) awaitMachine(what string, condition func(*fake.Machine) bool) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), waitTimeout)
	defer cancel()
	if err := l.machine.WaitFor(ctx, condition); err != nil {
		l.t.Fatalf("%s: %v", what, err)
	}
}

func (l *lab) journalDetails(kind fake.Kind) []string {
	var details []string
	for _, entry := range l.machine.Journal().Entries(func(e fake.Entry) bool { return e.Kind == kind }) {
		details = append(details, entry.Detail)
	}
	return details
}
