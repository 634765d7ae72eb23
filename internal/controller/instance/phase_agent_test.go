package instance

import (
	"context"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/remote"
)

func TestTheFormerAgentThatLaysOutTheNewOne(t *testing.T) {
	digest := func(digits string) string { return digits + strings.Repeat("0", 64-len(digits)) }
	sum, last, older := digest("aaaaaaaaaaaa"), digest("bbbbbbbbbbbb"), digest("cccccccccccc")
	patches := []payload.Patch{{From: last, To: sum, SHA256: "small"}, {From: older, To: sum, SHA256: "larger"}}
	for name, c := range map[string]struct {
		folders      string
		former, file string
	}{
		"a host that never had an agent is sent the program":    {"", "", ""},
		"so is one with the remains of a transfer of it":        {"aaaaaaaaaaaa", "", ""},
		"one with the last release's gets the patch to it":      {"bbbbbbbbbbbb", last, "small"},
		"one with an older one gets the patch from there":       {"aaaaaaaaaaaa cccccccccccc", older, "larger"},
		"of two patches that fit the smaller is taken":          {"cccccccccccc bbbbbbbbbbbb", last, "small"},
		"one with another's is sent the program, compressed":    {"dddddddddddd", digest("dddddddddddd"), sum},
		"of two agents without a patch the last one unpacks it": {"eeeeeeeeeeee dddddddddddd", digest("eeeeeeeeeeee"), sum},
	} {
		t.Run(name, func(t *testing.T) {
			want := ""
			if c.former != "" {
				want = nodespec.AgentPath(c.former)
			}
			if former, file := formerAgent(strings.Fields(c.folders), sum, patches); former != want || file != c.file {
				t.Errorf("%s is sent %q, want %s and %q", former, file, want, c.file)
			}
		})
	}
}

// bringing is a scope that is connected to a host, on which the folders are.
func bringing(t *testing.T, ref *v1alpha1.NodeReference, folders ...string) (*trial, *scope) {
	t.Helper()
	x := newTrial(t)
	var err error
	if x.Packer, err = payload.NewPacker(x.Payload, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if err := x.host.own.MkdirAll(folder); err != nil {
			t.Fatal(err)
		}
	}
	instance := ofMachine()
	instance.Status.NodeRef = ref
	if err := x.Client.Create(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	s := x.newScope(instance)
	s.connection, err = x.Hosts.Get(t.Context(), remote.Target{Instance: machine, Address: "10.0.128.7", User: "Administrator", Key: x.key})
	if err != nil {
		t.Fatal(err)
	}
	return x, s
}

// An agent that does not know the verb, does not start or cannot do it costs an upgrade nothing but bytes.
func TestTheAgentIsSentWhole(t *testing.T) {
	joined := &v1alpha1.NodeReference{Name: machine, UID: "node-uid", Confirmed: true}
	former := "/C:/k/wicd/0123456789ab"
	for name, c := range map[string]struct {
		ref     *v1alpha1.NodeReference
		folders []string
		execs   bool
	}{
		"to a host that is new, and nothing is run there":                    {nil, []string{former}, false},
		"to one whose first configuration was cut off":                       {&v1alpha1.NodeReference{Name: machine}, []string{former}, false},
		"to a node that an older operator has made":                          {joined, nil, false},
		"to a node whose former agent does not lay it out when it was asked": {joined, []string{former}, true},
	} {
		t.Run(name, func(t *testing.T) {
			x, s := bringing(t, c.ref, c.folders...)
			agent, err := s.agentFile()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			where, err := s.bringAgent(ctx, agent)
			if err != nil || where != nodespec.AgentPath(agent.SHA256) {
				t.Fatalf("%s, %v", where, err)
			}
			sent, err := x.host.own.Stat(path.Join("/", strings.ReplaceAll(where, `\`, "/")))
			if err != nil || sent.Size() != agent.Size {
				t.Errorf("it is not there whole: %v", err)
			}
			if _, execs := x.host.seen(); execs > 0 != c.execs {
				t.Errorf("%d programs were run", execs)
			}
		})
	}
}
