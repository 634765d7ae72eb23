package agent_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// newAgent is the agent of the next release.
var newAgent = program("wicd.exe", "v2")

// receive puts the archive into the inbox and has the present agent lay out an agent of it.
func (r *rig) receive(wanted, archive []byte) verb.Line {
	r.Helper()
	path := nodespec.InboxPayload(sum(archive))
	r.must(r.Drive().MkdirAll(nodespec.InboxRoot))
	r.must(r.Drive().WriteFile(path, archive))
	line, _ := r.run("receive", "--agent", "sha256:"+sum(wanted), "--payload", path)
	return line
}

// received tells whether the new agent is in its place, whole and for administrators only.
func (r *rig) received() {
	r.Helper()
	path := nodespec.AgentPath(sum(newAgent))
	data, err := r.Drive().ReadFile(path)
	if err != nil || !bytes.Equal(data, newAgent) {
		r.Fatalf("%s is not the new agent: %v", path, err)
	}
	for _, each := range []string{path, folderOf(newAgent)} {
		if info, err := r.Host().Files.Stat(r.ctx, each); err != nil || info.Access != host.AccessAdministrators {
			r.Errorf("%s: access %q, %v", each, info.Access, err)
		}
	}
}

func TestReceive(t *testing.T) {
	t.Parallel()
	for name, archive := range map[string][]byte{
		"a patch to the agent that runs": archiveOf(t, patchOf(t, agentProgram, newAgent)),
		"the whole agent":                archiveOf(t, newAgent),
	} {
		t.Run(name+" is laid out, and nothing else is changed", func(t *testing.T) {
			t.Parallel()
			r := joined(t)
			before := withoutChance(r.Snapshot())
			r.result(r.receive(newAgent, archive), nil)
			r.received()
			compare(t, before, withoutChance(r.Snapshot()))
			t.Run("asked for again, nothing is done", func(t *testing.T) {
				before := r.Snapshot()
				r.result(r.receive(newAgent, archive), nil)
				if diff := cmp.Diff(before, r.Snapshot()); diff != "" {
					t.Error(diff)
				}
			})
			t.Run("the new agent goes on from there", func(t *testing.T) {
				r.applied(r.upgraded())
				if service, _ := r.Service(nodespec.ServiceAgent); !strings.HasPrefix(service.RunningCommandLine, nodespec.AgentPath(sum(newAgent))) {
					t.Errorf("the service runs %s", service.RunningCommandLine)
				}
			})
		})
	}
	t.Run("what lies there with another content is replaced", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).start()
		r.push()
		r.must(r.Host().Tree.MakeDirectory(r.ctx, folderOf(newAgent), host.AccessAdministrators))
		r.must(r.Drive().WriteFile(nodespec.AgentPath(sum(newAgent)), newAgent[:len(newAgent)/2]))
		r.result(r.receive(newAgent, archiveOf(t, newAgent)), nil)
		r.received()
	})
}

func TestReceiveOfWhatIsNoAgent(t *testing.T) {
	t.Parallel()
	whole := archiveOf(t, newAgent)
	changed := bytes.Clone(whole)
	changed[len(changed)-6] ^= 1
	for name, archive := range map[string][]byte{
		"a patch that was made for another agent": archiveOf(t, patchOf(t, program("wicd.exe", "v0"), newAgent)),
		"a patch that makes another agent":        archiveOf(t, patchOf(t, agentProgram, program("wicd.exe", "v3"))),
		"another agent":                           archiveOf(t, program("wicd.exe", "v3")),
		"an archive that was cut off":             whole[:len(whole)/2],
		"an archive that was changed":             changed,
		"no archive":                              []byte("MZ"),
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			t.Parallel()
			r := newRig(t).start()
			r.fails(r.receive(newAgent, archive), verb.ReasonPayloadDamaged, "it is sent again")
			if data, err := r.Drive().ReadFile(nodespec.AgentPath(sum(newAgent))); err == nil && !bytes.Equal(data, newAgent) {
				t.Error("a part of it lies under the agent's name")
			}
			r.result(r.receive(newAgent, whole), nil)
			r.received()
		})
	}
	for name, args := range map[string]string{
		"without the agent's digest": `receive --payload C:\k\wicd\inbox\payload-00.zst`,
		"without an archive":         "receive --agent sha256:" + sum(newAgent),
		"with half a digest":         `receive --payload C:\a.zst --agent sha256:0011`,
		"with a path for a digest":   `receive --payload C:\a.zst --agent sha256:..\..\..\Windows\System32`,
		"with a spec":                `receive --spec C:\a.json`,
	} {
		t.Run(name+" it is not understood", func(t *testing.T) {
			t.Parallel()
			r := newRig(t).start()
			line, _ := r.run(strings.Fields(args)...)
			r.fails(line, verb.ReasonInvalidInput, "usage: wicd")
		})
	}
	t.Run("an archive that is not there is told", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).start()
		line, _ := r.run("receive", "--agent", "sha256:"+sum(newAgent), "--payload", nodespec.InboxPayload(sum(whole)))
		r.fails(line, verb.ReasonInvalidInput, "is not on the host")
	})
}

func TestReceiveOnAFullDisk(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	r.push()
	r.must(r.Drive().WriteFile(nodespec.InboxPayload(sum(archiveOf(t, newAgent))), archiveOf(t, newAgent)))
	mend := r.DiskFull(1 << 10)
	r.fails(r.receive(newAgent, archiveOf(t, newAgent)), verb.ReasonDiskFull, "make room")
	mend()
	r.result(r.receive(newAgent, archiveOf(t, newAgent)), nil)
	r.received()
}

// It waits its turn like every verb that changes the host.
func TestReceiveWhileAnotherVerbRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	r.push()
	var inner verb.Line
	once := false
	r.OnOperation(func(o fake.Operation) error {
		if !once && o.Interface == "Features" && changing[o.Interface+"."+o.Method] {
			once = true
			inner = r.receive(newAgent, archiveOf(t, newAgent))
		}
		return nil
	})
	r.configure()
	r.fails(inner, verb.ReasonBusy, "apply")
}

//
func TestReceiveKilledAnywhere(t *testing.T) {
	t.Parallel()
	for name, archive := range map[string][]byte{
		"a patch":         archiveOf(t, patchOf(t, agentProgram, newAgent)),
		"the whole agent": archiveOf(t, newAgent),
	} {
		for n, more := 1, true; more; n++ {
			t.Run(fmt.Sprintf("with %s before change %d", name, n), func(t *testing.T) {
				r := newRig(t).start()
				k := &killer{n: n}
				k.watch(r)
				r.receive(newAgent, archive)
				if more = k.at != ""; !more && n < 4 {
					t.Fatalf("only %d changes: the test does not see the agent", n-1)
				}
				t.Log("killed before " + k.at)
				k.n = 0 // no more
				if data, err := r.Drive().ReadFile(nodespec.AgentPath(sum(newAgent))); err == nil && !bytes.Equal(data, newAgent) {
					t.Error("a part of it lies under the agent's name")
				}
				r.result(r.receive(newAgent, archive), nil)
				r.received()
			})
		}
	}
}
