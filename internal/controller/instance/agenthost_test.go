package instance

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agent"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// agentHost is a simulated host that runs the real agent.
type agentHost struct {
	t       *testing.T
	machine *fake.Machine
	server  *winhost.Host
	address atomic.Value // string: the listen address
	off     bool
}

// withAgent replaces the host of the trial with a host that runs the real agent.
func (x *trial) withAgent(change ...func(*fake.Options)) *agentHost {
	x.t.Helper()
	h := &agentHost{t: x.t}
	options := fake.Options{Name: "EC2AMAZ-1", Addresses: []string{"10.0.128.7"}, Programs: x.newProgram,
		Network: everywhere{}, ProgramClock: x.clock}
	for _, each := range change {
		each(&options)
	}
	h.machine = fake.New(options)
	server := winhost.New(winhost.Options{
		Machine: h.machine, Rand: rand.Reader,
		AuthorizedKeys: map[string][]ssh.PublicKey{"Administrator": {x.key.Signer().PublicKey()}},
		Administrators: domainUsers,
		Listen: func(ctx context.Context) (net.Listener, error) {
			listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
			if err == nil {
				h.address.Store(listener.Addr().String())
			}
			return listener, err
		},
	})
	h.server = server
	if err := errors.Join(h.machine.Boot(x.t.Context()), server.Start(x.t.Context())); err != nil {
		x.t.Fatal(err)
	}
	x.server = func(ctx context.Context) (net.Conn, error) {
		if h.off {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}
		address, _ := h.address.Load().(string)
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	x.t.Cleanup(func() {
		x.Hosts.CloseAll()
		server.Stop()
		h.machine.Close()
	})
	return h
}

// everywhere is a network in which every name resolves and every address responds.
type everywhere struct{}

func (everywhere) LookupHost(context.Context, string) ([]string, error) {
	return []string{"10.0.0.2"}, nil
}

func (everywhere) DialContext(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	return near, far.Close()
}

// newProgram returns the program for an executable of the trial's payload: the agent itself, or an idle program.
func (x *trial) newProgram(content []byte) (fake.Program, error) {
	if !strings.HasPrefix(string(content), "wicd.exe") {
		return func(ctx context.Context, _ *fake.Process) int { <-ctx.Done(); return 0 }, nil
	}
	return func(ctx context.Context, p *fake.Process) int {
		return agent.Main(ctx, agent.Process{
			Host: p.Host, Args: p.Args, Executable: p.Path, Version: x.Version, Stdout: p.Stdout, Stderr: p.Stderr,
			Clock: p.Machine.Clock(x.clock), Rand: rand.Reader,
		})
	}, nil
}

// commandLines returns the command lines in order.
func (h *agentHost) commandLines() []string {
	var lines []string
	for _, entry := range h.machine.Journal().Entries(func(e fake.Entry) bool { return e.Kind == winhost.KindCommand }) {
		lines = append(lines, entry.Detail)
	}
	return lines
}

// agentCommands returns the agent commands in order.
func (h *agentHost) agentCommands() []string {
	var verbs []string
	for _, line := range h.commandLines() {
		if words := strings.Fields(line); len(words) > 1 {
			verbs = append(verbs, words[1])
		}
	}
	return verbs
}

// countLogins returns the number of SSH connections.
func (h *agentHost) countLogins() int {
	return len(h.machine.Journal().Entries(func(e fake.Entry) bool { return e.Kind == winhost.KindLogin }))
}

// storeSpec stores a spec on the host, as after an earlier apply.
func (h *agentHost) storeSpec(spec nodespec.NodeSpec) {
	h.t.Helper()
	data, err := spec.Encode()
	for _, dir := range []string{nodespec.Root, nodespec.AgentRoot} { // restricted, because the content of open directories counts as foreign
		err = errors.Join(err, h.machine.Host().Tree.MakeDirectory(h.t.Context(), dir, host.AccessAdministrators))
	}
	err = errors.Join(err, h.machine.Drive().WriteFile(nodespec.SpecPath, data))
	for _, identity := range spec.Identities {
		err = errors.Join(err, h.machine.Drive().MkdirAll(identity.Directory))
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// currentCertificate returns the current certificate of an identity; nil for none.
func (h *agentHost) currentCertificate(identity nodespec.Identity) *x509.Certificate {
	h.t.Helper()
	data, err := h.machine.Drive().ReadFile(identity.Path(nodespec.CurrentCertificate))
	if err != nil {
		return nil
	}
	block, _ := pem.Decode(data)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		h.t.Fatal(err)
	}
	return certificate
}

// enableSigning makes the API server sign approved requests, with the given or the requested lifetime, as the cluster's
// signers do. The signed requests are returned by signer.
func (x *trial) enableSigning(validity time.Duration) map[string][]*x509.CertificateRequest {
	x.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		x.t.Fatal(err)
	}
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "signer"}, IsCA: true,
		BasicConstraintsValid: true}
	signed := map[string][]*x509.CertificateRequest{}
	x.clientset.PrependReactor("create", "certificatesigningrequests", func(action clienttesting.Action) (bool,
		runtime.Object, error) {
		csr := action.(clienttesting.CreateAction).GetObject().(*certificatesv1.CertificateSigningRequest)
		csr.Spec.Username = "system:serviceaccount:" + operatorNamespace + ":windows-machine-config-operator"
		return false, nil, nil
	})
	x.clientset.PrependReactor("update", "certificatesigningrequests", func(action clienttesting.Action) (bool,
		runtime.Object, error) {
		csr := action.(clienttesting.UpdateAction).GetObject().(*certificatesv1.CertificateSigningRequest)
		if action.GetSubresource() != "approval" || !isApproved(csr) || len(csr.Status.Certificate) > 0 {
			return false, nil, nil
		}
		block, _ := pem.Decode(csr.Spec.Request)
		request, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			return true, nil, err
		}
		granted := validity
		if seconds := csr.Spec.ExpirationSeconds; seconds != nil {
			granted = min(validity, time.Duration(*seconds)*time.Second)
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(x.clock.Now().UnixNano()), Subject: request.Subject,
			NotBefore: x.clock.Now().Add(-5 * time.Minute), NotAfter: x.clock.Now().Add(granted),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
		data, err := x509.CreateCertificate(rand.Reader, template, authority, request.PublicKey, key)
		if err != nil {
			return true, nil, err
		}
		csr.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: data})
		signed[csr.Spec.SignerName] = append(signed[csr.Spec.SignerName], request)
		return false, nil, nil
	})
	return signed
}

// onAzure configures the instance as a node with a separate certificate for cloud-node-manager, issued at noon
// with the given lifetime.
func (x *trial) onAzure(validity time.Duration) (*agentHost, nodespec.Identity) {
	return x.onAzureAs(machineInstance(), validity)
}

func (x *trial) onAzureAs(instance *v1alpha1.WindowsInstance, validity time.Duration) (*agentHost, nodespec.Identity) {
	x.t.Helper()
	x.facts.Platform = "Azure"
	x.asNode(instance, x.key.Hash())
	s := x.newScope(x.getInstance())
	s.Cluster = *x.facts
	spec, err := x.newDependencies().specs.Build(s, nodeWithSubnet("10.132.0.0/24"))
	if err != nil {
		x.t.Fatal(err)
	}
	if len(spec.Identities) != 1 || spec.Identities[0].Name != nodespec.ServiceCloudNodeManager {
		x.t.Fatalf("on %s a node has the identities %+v", x.facts.Platform, spec.Identities)
	}
	h := x.withAgent()
	h.storeSpec(spec)
	x.forgetHostKey() // the key of this host is pinned at the first contact
	x.changeStatus(func(status *v1alpha1.WindowsInstanceStatus) {
		status.Certificates = []v1alpha1.CertificateStatus{certificateStatus(nodespec.ServiceCloudNodeManager,
			noon, noon.Add(validity))}
	})
	return h, spec.Identities[0]
}

// untilDue advances the clock until the instance's certificate is due for renewal.
func (x *trial) untilDue() {
	x.t.Helper()
	x.clock.SetTime(x.getInstance().Status.Certificates[0].RenewAt.Time)
}
