package diagnosis

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agent"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/inspection/hostsession"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/sshkey"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// trial is a host without a previous diagnosis, and a Checker.
type trial struct {
	t       *testing.T
	checker Checker
	machine *fake.Machine
	clock   *clocktesting.FakeClock
	server  *winhost.Host
	subject Subject
	before  fake.Snapshot
	// open holds the responding ports of the node.
	open []string
}

// outside is the network of the host: names resolve, and the API server responds unless unreachable is set.
type outside struct{ unreachable bool }

func (outside) LookupHost(context.Context, string) ([]string, error) {
	return []string{"10.0.0.2"}, nil
}

func (o outside) DialContext(context.Context, string, string) (net.Conn, error) {
	if o.unreachable {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	return near, far.Close()
}

func newTrial(t *testing.T, change ...func(*fake.Options)) *trial {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	key, err := sshkey.Parse(pem.EncodeToMemory(block))
	if err != nil {
		t.Fatal(err)
	}
	x := &trial{t: t}
	clock := clocktesting.NewFakeClock(noon)
	x.clock = clock
	options := fake.Options{Name: "WIN-1", Addresses: []string{"10.0.0.1"}, Network: outside{}, System: fake.WindowsServer2022(), ProgramClock: clock, Clock: clock, Programs: loadProgram}
	for _, each := range change {
		each(&options)
	}
	x.machine = fake.New(options)
	var listening net.Listener
	x.server = winhost.New(winhost.Options{
		Machine: x.machine, Rand: rand.Reader, StandardUsers: []string{"clerk"},
		AuthorizedKeys: map[string][]ssh.PublicKey{"Administrator": {key.Signer().PublicKey()}, "clerk": {key.Signer().PublicKey()}},
		Listen: func(ctx context.Context) (_ net.Listener, err error) {
			listening, err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
			return listening, err
		},
	})
	if err := errors.Join(x.machine.Boot(t.Context()), x.server.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.server.Stop(); x.machine.Close() })
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		name, port, _ := net.SplitHostPort(address)
		switch {
		case name == "nosuch.example.com":
			return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}}
		case port == "22":
			return new(net.Dialer).DialContext(ctx, network, listening.Addr().String())
		case slices.Contains(x.open, port):
			near, far := net.Pipe()
			return near, far.Close()
		}
		return nil, errors.New("connection refused")
	}
	files := onlyAgent(t)
	x.checker = Checker{
		Connector: hostsession.Connector{Dialer: &remote.Dialer{Dial: dial, Limits: remote.Limits{HandshakeTimeout: 5 * time.Second}}, Payload: files, Clock: clock, Rand: rand.Reader},
		Dial:      dial, Clock: clock, Line: support.CurrentLine(), Payload: files,
	}
	x.subject = Subject{
		Target:  remote.Target{Address: "10.0.0.1", User: "Administrator", Key: key},
		Cluster: supportedCluster(),
	}
	x.before = x.machine.Snapshot()
	return x
}

// loadProgram runs the agent, and idles for all other programs.
func loadProgram(content []byte) (fake.Program, error) {
	if string(content) != "wicd" {
		return func(ctx context.Context, _ *fake.Process) int { <-ctx.Done(); return 0 }, nil
	}
	return func(ctx context.Context, p *fake.Process) int {
		clock := clocktesting.NewFakeClock(noon)
		return agent.Main(ctx, agent.Process{Host: p.Host, Args: p.Args, Executable: p.Path, Stdout: p.Stdout,
			Stderr: p.Stderr, Clock: p.Machine.Clock(clock), Rand: rand.Reader})
	}, nil
}

// onlyAgent returns a payload that contains only the agent.
func onlyAgent(t *testing.T) *payload.Payload {
	t.Helper()
	p, err := payload.Write(t.TempDir(), payload.Build{Version: "1.2.3", Components: []payload.Source{{
		Component: payload.Component{Name: payload.ComponentAgent, Version: "v1", Source: "example.org/wicd@v1",
			Files: []payload.File{{Path: "wicd.exe"}}},
		Content: []func() (io.ReadCloser, error){func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("wicd")), nil }},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// supportedCluster returns the facts of a supported cluster.
func supportedCluster() *nodespec.Cluster {
	return &nodespec.Cluster{
		Platform: "AWS", Version: support.CurrentLine().Newest().OpenShift + ".1", APIServerInternalURL: "https://api-int.example.com:6443",
		Network: nodespec.ClusterNetwork{Type: "OVNKubernetes", HybridOverlay: true, HybridClusterNetworks: []string{"10.132.0.0/14"}},
	}
}

func (x *trial) runDiagnosis() Diagnosis {
	x.t.Helper()
	d, err := x.checker.Diagnose(x.t.Context(), x.subject)
	if err != nil {
		x.t.Fatal(err)
	}
	return d
}

// expectUnchanged expects that nothing on the host has changed.
func (x *trial) expectUnchanged() {
	x.t.Helper()
	if diff := cmp.Diff(x.before, x.machine.Snapshot()); diff != "" {
		x.t.Errorf("the host is another (-before +after):\n%s", diff)
	}
}

// expectFailedAt expects that a check fails, that all previous checks pass, and that no later check was made.
func (x *trial) expectFailedAt(at, message string) {
	x.t.Helper()
	outcome := Passed
	for _, check := range x.runDiagnosis().Checks {
		if check.Name == at {
			if check.Outcome != Failed || !strings.Contains(check.Message, message) || check.Remedy == "" {
				x.t.Errorf("%+v, want a failure with %q", check, message)
			}
			outcome = NotReached
			continue
		}
		if check.Outcome != outcome {
			x.t.Errorf("%+v, want it %s", check, outcome)
		}
	}
	if outcome == Passed {
		x.t.Errorf("no rung is %s", at)
	}
}

func TestDiagnose_SuitableHostPassesAllChecks(t *testing.T) {
	x := newTrial(t)
	for _, check := range x.runDiagnosis().Checks {
		if check.Outcome != Passed || check.Message == "" {
			t.Errorf("%+v", check)
		}
	}
	x.expectUnchanged()
}

func TestDiagnose_EachConnectionCheckCanFail(t *testing.T) {
	for at, c := range map[string]struct {
		fault   winhost.Fault
		change  func(*Subject)
		message string
	}{
		nameCheck:          {change: func(s *Subject) { s.Target.Address = "nosuch.example.com" }, message: "does not resolve"},
		tcpCheck:           {fault: winhost.RefuseConnection, message: "no TCP connection to port 22"},
		sshCheck:           {fault: winhost.HangBeforeBanner, message: "the SSH server does not respond"},
		hostKeyCheck:       {change: func(s *Subject) { s.Target.Expected = []string{"SHA256:other"} }, message: "the expected key is SHA256:other"},
		loginCheck:         {fault: winhost.RejectKey, message: "does not accept the key"},
		administratorCheck: {change: func(s *Subject) { s.Target.User = "clerk" }, message: "permission denied for user clerk"},
		agentCheck:         {fault: winhost.AgentBlocked, message: "agent"},
	} {
		t.Run(at, func(t *testing.T) {
			x := newTrial(t)
			if c.fault != "" {
				x.server.Inject(c.fault, c.fault.Example())
			}
			if c.change != nil {
				c.change(&x.subject)
			}
			x.before = x.machine.Snapshot()
			x.expectFailedAt(at, c.message)
			x.expectUnchanged()
		})
	}
}

func TestDiagnose_EachAgentCheckCanFail(t *testing.T) {
	for at, c := range map[string]struct {
		options func(*fake.Options)
		change  func(*trial)
		message string
	}{
		windowsCheck: {options: func(o *fake.Options) { o.System.Version = "10.0.14393" }, message: "is not supported on platform"},
		featuresCheck: {options: func(o *fake.Options) {
			o.Features = map[string]host.FeatureState{nodespec.FeatureContainers: host.FeatureUnknown}
		}, message: "does not have the feature Containers"},
		apiServerCheck: {options: func(o *fake.Options) { o.Network = outside{unreachable: true} }, message: "cannot reach the API server"},
		clockCheck:     {options: func(o *fake.Options) { o.ClockOffset = 2 * time.Hour }, message: "2h ahead"},
		portsCheck:     {change: func(x *trial) { x.open = []string{"10250"} }, message: "Another program answers on TCP port 10250"},
	} {
		t.Run(at, func(t *testing.T) {
			var options []func(*fake.Options)
			if c.options != nil {
				options = append(options, c.options)
			}
			x := newTrial(t, options...)
			if c.change != nil {
				c.change(x)
			}
			for _, check := range x.runDiagnosis().Checks {
				want := Passed
				if check.Name == at {
					want = Failed
				}
				if check.Outcome != want || want == Failed && (!strings.Contains(check.Message, c.message) || check.Remedy == "") {
					t.Errorf("%+v, want it %s", check, want)
				}
			}
		})
	}
}

func TestCheckDisk_TooSmallDiskFails(t *testing.T) {
	e := Evidence{Facts: &plan.Facts{}, MissingBytes: 300 << 20}
	e.Facts.System.FreeDiskBytes = 599 << 20
	if check := e.checkDisk(); check.Outcome != Failed || !strings.Contains(check.Message, "599.0 MiB free, and the programs of a node need 600.0 MiB") {
		t.Errorf("%+v", check)
	}
	e.Facts.System.FreeDiskBytes = 600 << 20
	if check := e.checkDisk(); check.Outcome != Passed {
		t.Errorf("%+v", check)
	}
}

func TestCheckPorts_ClosedNodePortFails(t *testing.T) {
	e := Evidence{Facts: &plan.Facts{}, Node: true, OpenPorts: map[int]bool{9182: true}}
	if check := e.checkPorts(); check.Outcome != Failed || !strings.Contains(check.Message, "cannot connect to TCP port 10250") {
		t.Errorf("%+v", check)
	}
	e.OpenPorts[10250] = true
	if check := e.checkPorts(); check.Outcome != Passed {
		t.Errorf("%+v", check)
	}
	t.Run("those of a host that the operator has begun to configure may", func(t *testing.T) {
		e.Node, e.Facts.Applied = false, "digest"
		if check := e.checkPorts(); check.Outcome != Passed {
			t.Errorf("%+v", check)
		}
	})
}

func TestDiagnose_ContinuesWithoutClusterSettings(t *testing.T) {
	x := newTrial(t)
	x.subject.Cluster, x.subject.Unknown = nil, "The cluster's configuration cannot be used: no Infrastructure."
	for _, check := range x.runDiagnosis().Checks {
		want := Passed
		if check.Name == windowsCheck || check.Name == apiServerCheck {
			want = NotReached
		}
		if check.Outcome != want || want == NotReached && check.Message != x.subject.Unknown {
			t.Errorf("%+v, want it %s", check, want)
		}
	}
}

func TestDiagnose_InterruptionLeavesHostUnchanged(t *testing.T) {
	x := newTrial(t)
	ctx, interrupt := context.WithCancelCause(t.Context())
	errGone := errors.New("gone")
	x.checker.Dial = func(context.Context, string, string) (net.Conn, error) { // the agent is already copied
		interrupt(errGone)
		return nil, errGone
	}
	if _, err := x.checker.Diagnose(ctx, x.subject); !errors.Is(err, errGone) {
		t.Errorf("the error is %v", err)
	}
	x.expectUnchanged()
}

// A directory writable by other users may disclose its files, and a NodeSpec contains secrets.
func TestNodeSpec_NotSentToUnprotectedDirectory(t *testing.T) {
	x := newTrial(t)
	stay, err := x.checker.Connector.Connect(t.Context(), x.subject.Target)
	if err != nil {
		t.Fatal(err)
	}
	if err := stay.EnsureAgent(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if err := x.machine.Drive().MkdirAll(nodespec.InboxRoot); err != nil { // created by a user of the host
		t.Fatal(err)
	}
	if _, err := stay.Plan(t.Context(), nodespec.NodeSpec{}); !errors.Is(err, hostsession.ErrUnprotected) {
		t.Errorf("the error is %v", err)
	}
	if sent, err := x.machine.Drive().ReadDir(nodespec.InboxRoot); err != nil || len(sent) > 0 {
		t.Errorf("it has sent %+v, %v", sent, err)
	}
	for _, dir := range []string{nodespec.Root, nodespec.AgentRoot, nodespec.InboxRoot} {
		if err := x.machine.Host().Tree.MakeDirectory(t.Context(), dir, host.AccessAdministrators); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stay.Plan(t.Context(), nodespec.NodeSpec{}); errors.Is(err, hostsession.ErrUnprotected) {
		t.Error("it sends nothing to a folder that is closed either")
	}
	if err := stay.Finish(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestDiagnose_InterruptionReportsPossibleLeftovers(t *testing.T) {
	x := newTrial(t)
	ctx, interrupt := context.WithCancelCause(t.Context())
	errGone := errors.New("gone")
	x.checker.Dial = func(context.Context, string, string) (net.Conn, error) { // the agent is already copied
		x.server.Stop()
		interrupt(errGone)
		return nil, errGone
	}
	_, err := x.checker.Diagnose(ctx, x.subject)
	if left := (*hostsession.LeftoverError)(nil); !errors.Is(err, errGone) || !errors.As(err, &left) ||
		!strings.Contains(err.Error(), nodespec.LandingRoot) || !strings.Contains(err.Error(), "may remain on the host") {
		t.Errorf("the error is %v", err)
	}
}

func TestDiagnose_OldLeftoversDeleted(t *testing.T) {
	x := newTrial(t)
	plant := func(names ...string) {
		t.Helper()
		for _, name := range names {
			dir := nodespec.LandingRoot + `\` + name
			if err := errors.Join(x.machine.Drive().MkdirAll(dir), x.machine.Drive().WriteFile(dir+`\wicd.exe`, []byte("wicd"))); err != nil {
				t.Fatal(err)
			}
		}
	}
	plant("visit-0123abcd", "visit-of-mine", "0123456789ab")
	x.clock.Step(23 * time.Hour)
	plant("visit-fedc9876")
	x.runDiagnosis()
	if len(x.listAgentEntries()) != 4 {
		t.Errorf("what was left within a day is deleted: there is %v", x.listAgentEntries())
	}
	x.clock.Step(2 * time.Hour)
	x.runDiagnosis()
	if diff := cmp.Diff([]string{"0123456789ab", "visit-fedc9876", "visit-of-mine"}, x.listAgentEntries()); diff != "" {
		t.Errorf("there is (-want +got):\n%s", diff)
	}
}

// listAgentEntries returns the names of the entries in the directory for agents.
func (x *trial) listAgentEntries() (names []string) {
	x.t.Helper()
	entries, err := x.machine.Drive().ReadDir(nodespec.LandingRoot)
	if err != nil {
		x.t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name)
	}
	return names
}

func TestDiagnose_RejectedLoginShowsHostKey(t *testing.T) {
	x := newTrial(t)
	x.server.Inject(winhost.RejectKey, winhost.RejectKey.Example())
	for _, rung := range x.runDiagnosis().Checks {
		if rung.Name == hostKeyCheck && (!strings.Contains(rung.Message, "presents the key SHA256:") || !strings.Contains(rung.Message, "none is pinned yet")) {
			t.Errorf("%+v", rung)
		}
	}
}

// Accepting such a key has no effect in the operator.
func TestDiagnose_ForeignHostKeyAcceptanceNotSuggested(t *testing.T) {
	x := newTrial(t)
	presented, err := x.server.HostKey()
	if err != nil {
		t.Fatal(err)
	}
	pinned := func(name, address string, key ssh.PublicKey) v1alpha1.WindowsInstance {
		return v1alpha1.WindowsInstance{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.WindowsInstanceSpec{Address: address},
			Status: v1alpha1.WindowsInstanceStatus{HostKey: &v1alpha1.HostKey{Key: base64.StdEncoding.EncodeToString(key.Marshal())}},
		}
	}
	former := x.subject.Target.Key.Signer().PublicKey()
	x.subject.Target.Instance = "own"
	x.subject.Target.HostKey = &remote.HostKey{Type: former.Type(), Data: former.Marshal()}
	for name, c := range map[string]struct {
		otherInstances []v1alpha1.WindowsInstance
		message        string
		suggests       string
	}{
		"is not suggested for acceptance, and the instance is named": {
			[]v1alpha1.WindowsInstance{pinned("other", "10.0.0.9", presented)}, "of WindowsInstance other (10.0.0.9)", "Restore the addresses of the hosts",
		},
		"after its deletion can be accepted": {nil, "the host was reinstalled", v1alpha1.AnnotationAcceptHostKey},
	} {
		t.Run(name, func(t *testing.T) {
			x.checker.Connector.Instances = func(context.Context) ([]v1alpha1.WindowsInstance, error) {
				return append(c.otherInstances, pinned("own", "10.0.0.1", former)), nil
			}
			for _, check := range x.runDiagnosis().Checks {
				if check.Name != hostKeyCheck {
					continue
				}
				if check.Outcome != Failed || !strings.Contains(check.Message, c.message) || !strings.Contains(check.Remedy, c.suggests) {
					t.Errorf("%+v", check)
				}
				if len(c.otherInstances) > 0 && strings.Contains(check.Remedy, v1alpha1.AnnotationAcceptHostKey) {
					t.Errorf("the remedy suggests acceptance: %s", check.Remedy)
				}
			}
			x.expectUnchanged()
		})
	}
}

func TestWithoutRetryHint_RemovesOperatorRetry(t *testing.T) {
	for next, want := range map[string]string{
		"The operator retries.":                                   "Try again.",
		"The operator retries; completed steps are not repeated.": "Try again.",
		"The operator retries; check the host's load.":            "Check the host's load.",
		"Check the address.":                                      "Check the address.",
	} {
		if got := withoutRetryHint(next); got != want {
			t.Errorf("%q becomes %q, want %q", next, got, want)
		}
	}
}
