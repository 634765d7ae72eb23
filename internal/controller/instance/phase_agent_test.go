package instance

import (
	"context"
	"errors"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/places"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// bringing returns a scope that is connected to a host, on which the files are. An agent of ours has told what the host
// is, if it is known.
func bringing(t *testing.T, ref *v1alpha1.NodeReference, known bool, files map[string]int64) (*trial, *scope.Scope) {
	t.Helper()
	x := newTrial(t)
	for name, size := range files {
		x.host.put(t, name, size)
	}
	instance := ofMachine()
	instance.Status.NodeRef = ref
	if known {
		instance.Status.Host = &v1alpha1.HostStatus{Name: machine}
	}
	if err := x.Client.Create(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	s := x.scope(instance)
	var err error
	s.Connection, err = x.Hosts.Get(t.Context(), remote.Target{Instance: machine, Address: "10.0.128.7",
		User: "Administrator", Key: x.key})
	if err != nil {
		t.Fatal(err)
	}
	return x, s
}

// put writes a file of a size onto the host's disk.
func (h *sshHost) put(t *testing.T, windows string, size int64) {
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

// onDisk is where a Windows path lies on a scripted host's disk.
func onDisk(windows string) string { return path.Join("/", strings.ReplaceAll(windows, `\`, "/")) }

func TestTheAgentIsSentWhole(t *testing.T) {
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
			x, s := bringing(t, c.ref, c.known, c.files)
			where := x.brings(s, nodespec.LandingPath)
			agent, err := x.Payload.Agent()
			if err != nil {
				t.Fatal(err)
			}
			sent, err := x.host.own.Stat(onDisk(where))
			if err != nil || sent.Size() != agent.Size {
				t.Errorf("it is not there whole: %v", err)
			}
			if _, execs := x.host.seen(); execs > 0 {
				t.Errorf("%d programs were run", execs)
			}
		})
	}
}

// brings has the agent brought, and expects it in a place.
func (x *trial) brings(s *scope.Scope, place func(sha256 string) string) string {
	x.t.Helper()
	agent, err := x.Payload.Agent()
	if err != nil {
		x.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(x.t.Context(), time.Minute)
	defer cancel()
	where, err := x.rooms().link.BringAgent(ctx, s, agent)
	if err != nil || where != place(agent.SHA256) {
		x.t.Fatalf("%s, %v", where, err)
	}
	return where
}

// Any user of a host may have made C:\k before the operator came: the size of what lies there says nothing.
func TestAProgramThatNobodyKnowsIsNotTakenForTheAgent(t *testing.T) {
	agents := func(t *testing.T, place func(sha256 string) string) map[string]int64 {
		t.Helper()
		agent, err := newTrial(t).Payload.Agent()
		if err != nil {
			t.Fatal(err)
		}
		return map[string]int64{place(agent.SHA256): agent.Size}
	}
	t.Run("on a host that is new", func(t *testing.T) {
		x, s := bringing(t, nil, false, agents(t, nodespec.AgentPath))
		x.brings(s, nodespec.LandingPath)
	})
	t.Run("on a host that shows another key, which an administrator has accepted", func(t *testing.T) {
		x, s := bringing(t, nil, true, agents(t, nodespec.AgentPath))
		s.Instance.Status.HostKey = &v1alpha1.HostKey{Type: "ssh-ed25519", Key: "YmVmb3Jl"}
		x.Hosts.Release(s.Connection)
		x.annotate(v1alpha1.AnnotationAcceptHostKey, x.host.fingerprint())
		status := s.Instance.Status
		s = x.scope(x.instance())
		s.Instance.Status, s.Key = status, x.key
		if o := x.rooms().link.Reach(t.Context(), s); o != nil {
			t.Fatalf("%+v", o)
		}
		x.brings(s, nodespec.LandingPath)
	})
	t.Run("while the agent on a host that ours has closed to others is not sent again", func(t *testing.T) {
		x, s := bringing(t, nil, true, agents(t, nodespec.AgentPath))
		x.brings(s, nodespec.AgentPath)
	})
	t.Run("and neither is one that has landed before", func(t *testing.T) {
		x, s := bringing(t, nil, false, agents(t, nodespec.LandingPath))
		where := x.brings(s, nodespec.LandingPath)
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

// othersAreSentPrograms has as many hosts sent programs as may be at once.
func (x *trial) othersAreSentPrograms() {
	x.t.Helper()
	for {
		waits := false
		ctx, cancel := context.WithCancel(x.t.Context())
		end, err := x.transfers.Begin(ctx, x.clock, new(places.Order), func() {
			waits = true
			cancel()
		})
		cancel()
		if waits {
			return
		}
		if err != nil {
			x.t.Fatal(err)
		}
		x.t.Cleanup(end)
	}
}

func TestAHostWaitsForOthersOnlyWhileItLacksTheAgentAndIsConnected(t *testing.T) {
	t.Run("one that has the agent does not wait", func(t *testing.T) {
		agent, err := newTrial(t).Payload.Agent()
		if err != nil {
			t.Fatal(err)
		}
		x, s := bringing(t, nil, false, map[string]int64{nodespec.LandingPath(agent.SHA256): agent.Size})
		x.othersAreSentPrograms()
		x.brings(s, nodespec.LandingPath)
	})
	t.Run("one whose connection ends leaves the line", func(t *testing.T) {
		x, s := bringing(t, nil, false, nil)
		x.othersAreSentPrograms()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go s.Connection.Close()
		_, err := x.rooms().link.BeginTransfer(ctx, s, "SendAgent")
		if !errors.Is(err, remote.ErrClosed) {
			t.Errorf("the wait has ended with %v", err)
		}
	})
}
