package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// runLanded uploads the agent as the operator does on an unknown host, and runs a command there.
func (r *rig) runLanded(args ...string) agentapi.Line {
	r.Helper()
	path := nodespec.LandingPath(hexDigest(r.program))
	r.must(r.Drive().MkdirAll(path[:strings.LastIndexByte(path, '\\')]))
	r.must(r.Drive().WriteFile(path, r.program))
	line, _ := r.runFrom(path, args...)
	return line
}

// plantFile writes a file as any user of the host can.
func (r *rig) plantFile(path, content string) {
	r.Helper()
	r.must(r.Drive().MkdirAll(path[:strings.LastIndexByte(path, '\\')]))
	r.must(r.Drive().WriteFile(path, []byte(content)))
}

func (r *rig) expectClosed(paths ...string) {
	r.Helper()
	for _, path := range paths {
		if info, err := r.Drive().Stat(path); err != nil || info.Access != host.AccessAdministrators {
			r.Errorf("%s may be used by %q (%v)", path, info.Access, err)
		}
	}
}

func (r *rig) expectOwnProgram() {
	r.Helper()
	if data, err := r.Drive().ReadFile(nodespec.AgentPath(hexDigest(r.program))); err != nil || !bytes.Equal(data, r.program) {
		r.Errorf("the agent's own program is not in its place: %q, %v", data, err)
	}
}

func TestInstallDir_AgentMovesFromLandingDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	if line := r.runLanded("facts"); line.Result == nil {
		t.Fatalf("%+v", line.Failure)
	}
	r.expectClosed(nodespec.Root, nodespec.AgentRoot, nodespec.InboxRoot, nodespec.AgentPath(hexDigest(r.program)))
	r.expectOwnProgram()
	r.configureHost()
	if _, err := r.Drive().Stat(nodespec.LandingRoot); err == nil {
		t.Error("where it has landed is left behind")
	}
	r.removeNode()
	compareSnapshots(t, r.before, r.Snapshot())
}

// Any user of a Windows host may create directories in C:\, and controls their content.
func TestInstallDir_UserFilesNotUsed(t *testing.T) {
	t.Parallel()
	t.Run("neither a program nor a ledger, a NodeSpec or a lock", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).start()
		r.plantFile(nodespec.AgentPath(hexDigest(r.program)), strings.Repeat("x", len(r.program)))
		r.plantFile(nodespec.LedgerPath, evilLedger)
		r.plantFile(nodespec.SpecPath, "{}")
		r.plantFile(nodespec.LockPath, "{}")
		if line := r.runLanded("facts"); line.Result == nil {
			t.Fatalf("%+v", line.Failure)
		}
		r.expectOwnProgram()
		for _, path := range []string{nodespec.LedgerPath, nodespec.SpecPath, nodespec.LockPath} {
			if _, err := r.Drive().Stat(path); err == nil {
				t.Errorf("%s is still there", path)
			}
		}
		r.expectNoEvil()
	})
	t.Run("nor a C:\\k that leads elsewhere", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).start()
		r.must(r.Drive().MkdirAll(`C:\Users\Public\k`))
		r.must(r.Drive().Symlink(`C:\Users\Public\k`, nodespec.Root))
		line := r.runLanded("facts")
		if line.Failure == nil || !strings.Contains(line.Failure.Message, nodespec.Root) || !strings.Contains(line.Failure.Message, "move it away") {
			t.Errorf("it says %+v", line)
		}
		if entries, err := r.Drive().ReadDir(`C:\Users\Public\k`); err != nil || len(entries) > 0 {
			t.Errorf("there is something at its end: %v, %v", entries, err)
		}
	})
	t.Run("nor a folder that is put in the agent's place at the last moment", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).start()
		r.plantFile(`C:\k\notes.txt`, "buy milk")
		r.landsBeside(func() {
			r.must(r.Drive().RemoveAll(nodespec.AgentRoot))
			r.plantFile(nodespec.LedgerPath, evilLedger)
		})
		r.expectNoEvil()
	})
	t.Run("nor a C:\\k that appears at the last moment", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).start()
		r.landsBeside(func() { r.plantFile(nodespec.LedgerPath, evilLedger) })
		r.expectNoEvil()
	})
}

// Programs in C:\k\releases run as SYSTEM, and the manifests there are trusted: files from a user must never be
// used.
func TestInstallDir_ForeignReleasesRejected(t *testing.T) {
	t.Parallel()
	kubelet := newSpec(nil).Releases[1]
	for name, when := range map[string]func(r *rig, plant func()){
		"that were there before": func(r *rig, plant func()) { plant() },
		"that came while C:\\k was being closed": func(r *rig, plant func()) {
			r.overrideHost(func(h *host.Host) { h.Tree = hostileTree{h.Tree, plant} })
		},
		"with a ledger of a user's": func(r *rig, plant func()) {
			plant()
			r.plantFile(nodespec.LedgerPath, `{"paths":{"C:\\k\\releases":{}}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).start()
			when(r, func() {
				for _, file := range kubelet.Files {
					r.plantFile(kubelet.Path(file), "MZ evil")
				}
				r.plantFile(kubelet.Manifest(), "{}")
			})
			for range 2 { // the second time C:\k may be restricted already
				line := r.runLanded("facts")
				if line.Failure == nil || !strings.Contains(line.Failure.Message, nodespec.ReleasesRoot) || !strings.Contains(line.Failure.Message, "move it away") {
					t.Fatalf("it says %+v", line)
				}
				r.overrideHost(func(*host.Host) {})
			}
			r.must(r.Drive().RemoveAll(nodespec.ReleasesRoot))
			if line := r.runLanded("facts"); line.Result == nil {
				t.Fatalf("once they are away it fails, too: %v", line.Failure)
			}
			r.configureHost()
			r.expectClosed(nodespec.ReleasesRoot, kubelet.Directory)
		})
	}
}

func TestInstallDir_ForeignLinkNotFollowed(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	r.must(r.Drive().MkdirAll(nodespec.Root))
	r.must(r.Drive().MkdirAll(`C:\Users\Public\cni`))
	r.must(r.Drive().Symlink(`C:\Users\Public\cni`, `C:\k\cni`))
	r.runLanded("facts")
	line, _ := r.apply(newSpec(nil))
	if line.Failure == nil || !strings.Contains(line.Failure.Message, `C:\k\cni`) {
		t.Errorf("it says %+v", line)
	}
	if entries, err := r.Drive().ReadDir(`C:\Users\Public\cni`); err != nil || len(entries) > 0 {
		t.Errorf("there is something at its end: %v, %v", entries, err)
	}
}

// An administrator who opens the agent's directory to other users must not lose the ledger: it is the only
// record of the original state.
func TestInstallDir_NotReplacedWhileAgentServiceExists(t *testing.T) {
	t.Parallel()
	r := newRig(t, withForeignObjects).start()
	r.configureHost()
	ledger, err := r.Drive().ReadFile(nodespec.LedgerPath)
	r.must(err)
	r.must(r.Host().Tree.MakeDirectory(r.ctx, nodespec.AgentRoot, host.AccessInherited))
	line := r.runLanded("facts")
	if line.Failure == nil || !strings.Contains(line.Failure.Message, nodespec.ServiceAgent) || !strings.Contains(line.Failure.Message, "remove these permissions") {
		t.Errorf("it says %+v", line)
	}
	if now, err := r.Drive().ReadFile(nodespec.LedgerPath); err != nil || !bytes.Equal(now, ledger) {
		t.Fatalf("the ledger is another: %v", err)
	}
	r.must(r.Host().Tree.MakeDirectory(r.ctx, nodespec.AgentRoot, host.AccessAdministrators))
	if line := r.runLanded("facts"); line.Result == nil {
		t.Errorf("once they are out it fails, too: %v", line.Failure)
	}
	r.removeNode()
	r.must(r.Drive().RemoveAll(nodespec.LandingRoot))
	compareSnapshots(t, r.before, r.Snapshot())
}

const (
	evilProgram = `C:\Windows\System32\evil.dll`
	evilLedger  = `{"paths":{"C:\\Windows\\System32\\evil.dll":{"existed":true,"content":"ZXZpbA=="}}}`
)

// landsBeside runs a new agent on a host with a user who acts just before C:\k is restricted.
func (r *rig) landsBeside(user func()) {
	r.Helper()
	r.overrideHost(func(h *host.Host) { h.Tree = hostileTree{h.Tree, user} })
	if line := r.runLanded("facts"); line.Result == nil {
		r.Fatalf("%+v", line.Failure)
	}
	r.overrideHost(func(*host.Host) {})
	r.expectClosed(nodespec.Root, nodespec.AgentRoot, nodespec.InboxRoot)
	r.expectOwnProgram()
}

// expectNoEvil removes the host, and fails if the agent follows the ledger of a user.
func (r *rig) expectNoEvil() {
	r.Helper()
	r.run("remove")
	if _, err := r.Drive().Stat(evilProgram); err == nil {
		r.Error("a removal did what somebody has written into the ledger")
	}
}

// hostileTree is the file tree of a host with a user who acts just before C:\k is restricted.
type hostileTree struct {
	host.Tree
	user func()
}

func (h hostileTree) MakeDirectory(ctx context.Context, path string, access host.Access) error {
	if path == nodespec.Root {
		h.user()
	}
	return h.Tree.MakeDirectory(ctx, path, access)
}

func TestInstallDir_KeptFromEarlierAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t, withForeignObjects).start()
	r.configureHost()
	ledger, err := r.Drive().ReadFile(nodespec.LedgerPath)
	r.must(err)
	if line := r.runLanded("facts"); line.Result == nil || line.Result.Facts.Applied != r.fullSpec().Digest() {
		t.Fatalf("an operator that does not know the host gets %+v", line)
	}
	if now, err := r.Drive().ReadFile(nodespec.LedgerPath); err != nil || !bytes.Equal(now, ledger) {
		t.Errorf("the ledger is another: %v", err)
	}
	r.removeNode()
	r.must(r.Drive().RemoveAll(nodespec.LandingRoot))
	compareSnapshots(t, r.before, r.Snapshot())
}

// even if only the access to a directory must be restored.
func TestInstallDir_ForeignDirectoryRestrictedUntilRemoval(t *testing.T) {
	t.Parallel()
	t.Run("that was a node", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, withForeignObjects).start()
		r.runLanded("facts")
		r.expectClosed(nodespec.Root)
		r.configureHost()
		r.removeNode()
		compareSnapshots(t, r.before, r.Snapshot())
	})
	t.Run("that never became one", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, withForeignObjects).start()
		r.runLanded("facts")
		r.expectClosed(nodespec.Root)
		if _, err := r.Drive().Stat(nodespec.FoundPath); err != nil {
			t.Fatalf("nothing tells the operator that there is something to give back: %v", err)
		}
		r.removeNode()
		r.must(r.Drive().RemoveAll(nodespec.LandingRoot))
		compareSnapshots(t, r.before, r.Snapshot())
	})
}

func TestInstallDir_MoveContinuesAfterKill(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		r := newRig(t, withForeignObjects).start()
		k := &killer{n: n}
		k.registerHook(r)
		r.runLanded("facts")
		if k.at == "" {
			if n < 5 {
				t.Errorf("only %d changes were seen", n-1)
			}
			return
		}
		t.Run(fmt.Sprintf("before change %d", n), func(t *testing.T) {
			r.T = t
			if line := r.runLanded("facts"); line.Result == nil {
				t.Fatalf("killed before %s, it fails: %v", k.at, line.Failure)
			}
			r.expectClosed(nodespec.Root, nodespec.AgentRoot, nodespec.InboxRoot)
			r.expectOwnProgram()
			r.configureHost()
			r.removeNode()
			compareSnapshots(t, r.before, r.Snapshot())
		})
	}
}
