package instance

import (
	"bytes"
	"crypto/rand"
	"io"
	"path"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
)

// newAgentScope returns a scope with a connection to a host that has the files. If known is true, an agent of the
// operator has reported the facts of the host before.
func newAgentScope(t *testing.T, ref *v1alpha1.NodeReference, known bool, files map[string]int64) (*trial, *scope.Scope) {
	t.Helper()
	x := newTrial(t)
	for name, size := range files {
		x.host.writeFile(t, name, size)
	}
	instance := machineInstance()
	instance.Status.NodeRef = ref
	if known {
		instance.Status.Host = &v1alpha1.HostStatus{Name: machine}
	}
	if err := x.Client.Create(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	s := x.newScope(instance)
	s.Key = x.key
	if o := x.runPhase(s, x.newDependencies().connect.reconcile); o != nil {
		t.Fatalf("%+v", o)
	}
	if known {
		s.Instance.Status.Host = &v1alpha1.HostStatus{Name: machine}
	}
	return x, s
}

// writeFile writes a file of a size to the host's disk.
func (h *sshHost) writeFile(t *testing.T, windows string, size int64) {
	t.Helper()
	name := onDisk(windows)
	if err := h.own.MkdirAll(path.Dir(name)); err != nil {
		t.Fatal(err)
	}
	file, err := h.own.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// onDisk returns the path of a Windows file on the disk of a scripted host.
func onDisk(windows string) string { return path.Join("/", strings.ReplaceAll(windows, `\`, "/")) }

func TestInstallAgent_SendsFullFile(t *testing.T) {
	joined := &v1alpha1.NodeReference{Name: machine, UID: "node-uid", Confirmed: true}
	former := map[string]int64{`C:\k\wicd\0123456789ab\wicd.exe`: 7}
	for name, c := range map[string]struct {
		ref   *v1alpha1.NodeReference
		known bool
		files map[string]int64
	}{
		"to a host that is new":                           {nil, false, nil},
		"to one whose first configuration was cut off":    {&v1alpha1.NodeReference{Name: machine}, true, former},
		"to a node that an older operator has made":       {joined, false, former},
		"to a node that has the agent of another release": {joined, true, former},
	} {
		t.Run(name, func(t *testing.T) {
			x, s := newAgentScope(t, c.ref, c.known, c.files)
			where := x.installAgent(s, nodespec.LandingPath)
			agent, err := x.Payload.Agent()
			if err != nil {
				t.Fatal(err)
			}
			sent, err := x.host.own.Stat(onDisk(where))
			if err != nil || sent.Size() != agent.Size {
				t.Errorf("it is not there whole: %v", err)
			}
			if _, execs := x.host.loginsAndExecs(); execs > 1 {
				t.Errorf("%d programs were run beside the agent that was sent", execs-1)
			}
		})
	}
}

// agentRelease returns a payload with an agent, and with patches from earlier agents, if any.
func agentRelease(t *testing.T, program []byte, earlier ...*payload.Payload) *payload.Payload {
	t.Helper()
	p, err := payload.Write(t.TempDir(), payload.Build{Version: "1.2.3", Earlier: earlier, Components: []payload.Source{{
		Component: payload.Component{Name: payload.ComponentAgent, Version: "v1", Source: "example.org/wicd@v1", Required: true,
			Files: []payload.File{{Path: "wicd.exe"}}},
		Content: []func() (io.ReadCloser, error){func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(program)), nil
		}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The host runs no programs. An agent of a release without the agent command `patch`, or an agent that Windows
// does not start, behaves the same.
func TestInstallAgent_SendsFullFileAfterFailedPatch(t *testing.T) {
	program := make([]byte, 50_000)
	if _, err := rand.Read(program); err != nil {
		t.Fatal(err)
	}
	former := agentRelease(t, program)
	x, _ := newAgentScope(t, &v1alpha1.NodeReference{Name: machine, UID: "node-uid", Confirmed: true}, true,
		map[string]int64{nodespec.AgentPath(former.Manifest().Components[0].Files[0].SHA256): int64(len(program))})
	x.Payload = agentRelease(t, append(bytes.Clone(program), "and more"...), former)
	x.restartOperator()
	s := x.newScope(x.getInstance())
	s.Key = x.key
	if o := x.runPhase(s, x.newDependencies().connect.reconcile); o != nil {
		t.Fatalf("%+v", o)
	}
	s.Instance.Status.Host = &v1alpha1.HostStatus{Name: machine}
	agent, err := x.Payload.Agent()
	if err != nil {
		t.Fatal(err)
	}
	patches := x.Payload.Patches(agent.SHA256)
	if len(patches) != 1 {
		t.Fatalf("the payload has the patches %v", patches)
	}
	where := x.installAgent(s, nodespec.LandingPath)
	if sent, err := x.host.own.Stat(onDisk(where)); err != nil || sent.Size() != agent.Size {
		t.Errorf("it is not there whole: %v", err)
	}
	if sent, err := x.host.own.Stat(onDisk(nodespec.InboxPatch(patches[0].SHA256))); err != nil || sent.Size() != patches[0].Size {
		t.Errorf("the patch was not sent first: %v", err)
	}
	if _, execs := x.host.loginsAndExecs(); execs != 2 { // the former agent, and the new one
		t.Errorf("%d programs were run", execs)
	}
}

// installAgent has the agent installed, and checks the path. The host runs no programs, so there are no facts.
func (x *trial) installAgent(s *scope.Scope, pathOf func(sha256 string) string) string {
	x.t.Helper()
	agent, err := x.Payload.Agent()
	if err != nil {
		x.t.Fatal(err)
	}
	if o := x.runPhase(s, inspectHost); o == nil || !o.Outcome.IsFailure() {
		x.t.Fatalf("%+v", o)
	}
	where, landing := pathOf(agent.SHA256), nodespec.LandingPath(agent.SHA256)
	sent, err := x.host.own.Stat(onDisk(landing))
	if landed := err == nil && sent.Size() == agent.Size; landed != (where == landing) {
		x.t.Fatalf("it is where it lands: %t", landed)
	}
	return where
}

// Any user of a host may have created C:\k before the operator, so the size of a file there proves nothing.
func TestInstallAgent_UnknownProgramNotTrusted(t *testing.T) {
	agents := func(t *testing.T, pathOf func(sha256 string) string) map[string]int64 {
		t.Helper()
		agent, err := newTrial(t).Payload.Agent()
		if err != nil {
			t.Fatal(err)
		}
		return map[string]int64{pathOf(agent.SHA256): agent.Size}
	}
	t.Run("on a host that is new", func(t *testing.T) {
		x, s := newAgentScope(t, nil, false, agents(t, nodespec.AgentPath))
		x.installAgent(s, nodespec.LandingPath)
	})
	t.Run("on a host that shows another key, which an administrator has accepted", func(t *testing.T) {
		x, s := newAgentScope(t, nil, true, agents(t, nodespec.AgentPath))
		s.Instance.Status.HostKey = &v1alpha1.HostKey{Type: "ssh-ed25519", Key: "YmVmb3Jl"}
		x.Hosts.Close(machine)
		x.annotateInstance(v1alpha1.AnnotationAcceptHostKey, x.host.keyFingerprint())
		status := s.Instance.Status
		s = x.newScope(x.getInstance())
		s.Instance.Status, s.Key = status, x.key
		if o := x.runPhase(s, x.newDependencies().connect.reconcile); o != nil {
			t.Fatalf("%+v", o)
		}
		x.installAgent(s, nodespec.LandingPath)
	})
	t.Run("while the agent on a host that ours has closed to others is not sent again", func(t *testing.T) {
		x, s := newAgentScope(t, nil, true, agents(t, nodespec.AgentPath))
		x.installAgent(s, nodespec.AgentPath)
	})
	t.Run("and neither is one that has landed before", func(t *testing.T) {
		x, s := newAgentScope(t, nil, false, agents(t, nodespec.LandingPath))
		where := x.installAgent(s, nodespec.LandingPath)
		file, err := x.host.own.Open(onDisk(where))
		if err != nil {
			t.Fatal(err)
		}
		first := []byte("?")
		if _, err := file.Read(first); err != nil || first[0] != 0 {
			t.Errorf("it was sent again: it begins with %q (%v)", first, err)
		}
	})
}
