package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// guardedSpec returns the small node with the directories that every node has outside of C:\k.
func guardedSpec() nodespec.NodeSpec {
	spec := newSpec(nil)
	for i, directory := range spec.Directories {
		for _, each := range nodespec.GuardedDirectories() {
			if directory.Path == each.Path {
				spec.Directories[i] = each
			}
		}
	}
	for _, name := range []string{"root", "state"} {
		spec.Directories = append(spec.Directories, nodespec.Directory{Path: nodespec.ContainerdData + `\` + name, Access: host.AccessAdministrators})
	}
	return spec
}

// createForeign creates a directory as a user of the host before the node does.
func (r *rig) createForeign(path string) {
	r.Helper()
	r.must(r.Drive().MkdirAll(path))
	r.must(r.Drive().SetOwner("joe", path))
}

// expectRefused fails unless the command was refused because of the path, with advice, and the given paths
// contain no secrets.
func (r *rig) expectRefused(line agentapi.Line, path string, directories ...string) {
	r.Helper()
	if line.Failure == nil || !strings.Contains(line.Failure.Message, path) ||
		!strings.Contains(line.Failure.Message, "move it away") {
		r.Errorf("it says %+v", line)
	}
	for _, path := range directories {
		if entries, err := r.Drive().ReadDir(path); err == nil && len(entries) > 0 {
			r.Errorf("there is something in %s: %v", path, entries)
		}
	}
}

// Any user of a Windows host may create directories in C:\, and the node's directories there contain the
// kubelet's key and the Secrets of pods.
func TestInstallDir_UserOwnedDirectoriesRejected(t *testing.T) {
	t.Parallel()
	const elsewhere = `C:\Users\joe\elsewhere`
	type plant func(r *rig, path string)
	for what, plant := range map[string]plant{
		"a folder of a user's": func(r *rig, path string) { r.createForeign(path) },
		"a junction to one": func(r *rig, path string) {
			r.must(r.Drive().MkdirAll(elsewhere))
			r.must(r.Drive().MkdirAll(path[:strings.LastIndexByte(path, '\\')]))
			r.must(r.Drive().Symlink(elsewhere, path))
		},
		"a file": func(r *rig, path string) { r.plantFile(path, "x") },
	} {
		for _, directory := range nodespec.GuardedDirectories() {
			t.Run(what+" at "+directory.Path, func(t *testing.T) {
				t.Parallel()
				r := newRig(t).start()
				plant(r, directory.Path)
				r.expectRefused(r.runLanded("facts"), directory.Path, elsewhere)
				if info, err := r.Drive().Stat(nodespec.Root); err == nil {
					t.Errorf("the host was changed: %+v", info)
				}
				r.must(r.Drive().RemoveAll(directory.Path))
				if line := r.runLanded("facts"); line.Result == nil {
					t.Errorf("once it is away it fails, too: %v", line.Failure)
				}
			})
		}
	}
	for _, path := range nodeEntries {
		t.Run("a folder of a user's at "+path+", in a folder of administrators", func(t *testing.T) {
			t.Parallel()
			r := newRig(t).start()
			r.createForeign(path)
			r.expectRefused(r.runLanded("facts"), path)
		})
	}
	t.Run("but a program of a user may have its logs beside the node's", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).start()
		r.createForeign(`C:\var\log\shop`)
		if line := r.runLanded("facts"); line.Result == nil {
			t.Errorf("%+v", line.Failure)
		}
		if line, _ := r.apply(guardedSpec()); line.Result == nil {
			t.Errorf("%+v", line.Failure)
		}
	})
}

// nodeEntries are directories in which the kubelet, containerd and CNI plugins keep data of pods.
var nodeEntries = []string{
	`C:\var\lib\kubelet\pods`, `C:\var\log\pods`, `C:\var\log\containers`, `C:\var\lib\cni\networks`, `C:\ProgramData\containerd\root`,
	`C:\ProgramData\containerd\root\io.containerd.snapshotter.v1.windows`, `C:\ProgramData\containerd\state\io.containerd.runtime.v2.task`,
}

// A user may be faster than the operator: the directories are checked again before anything is written below.
func TestInstallDir_LaterUserDirectoryRejected(t *testing.T) {
	t.Parallel()
	const elsewhere, pods = `C:\Users\joe\elsewhere`, `C:\var\lib\kubelet`
	for name, user := range map[string]func(r *rig){
		"a folder": func(r *rig) { r.createForeign(`C:\var`) },
		"a junction": func(r *rig) {
			r.must(r.Drive().MkdirAll(elsewhere))
			r.must(r.Drive().Symlink(elsewhere, `C:\var`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).start()
			r.runLanded("facts")
			user(r)
			line, _ := r.apply(guardedSpec())
			r.expectRefused(line, `C:\var`, elsewhere, pods)
		})
	}
	for _, path := range nodeEntries {
		t.Run("a folder at "+path+", in a folder of administrators", func(t *testing.T) {
			t.Parallel()
			r := newRig(t).start()
			r.runLanded("facts")
			r.must(r.Drive().MkdirAll(path[:strings.LastIndexByte(path, '\\')]))
			args := r.sendSpec(guardedSpec())
			r.overrideHost(func(h *host.Host) {
				h.Tree = exchangingTree{h.Tree, path[:strings.LastIndexByte(path, '\\')], func() { r.createForeign(path) }}
			})
			line, _ := r.run(append([]string{"apply"}, args...)...)
			r.expectRefused(line, path)
		})
	}
	t.Run("a folder that is exchanged while it is being closed", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).start()
		r.runLanded("facts")
		r.must(r.Drive().MkdirAll(elsewhere))
		r.overrideHost(func(h *host.Host) {
			h.Tree = exchangingTree{h.Tree, `C:\var`, func() {
				r.must(r.Drive().RemoveAll(`C:\var`))
				r.must(r.Drive().Symlink(elsewhere, `C:\var`))
			}}
		})
		line, _ := r.apply(guardedSpec())
		if line.Failure == nil || !strings.Contains(line.Failure.Message, "a user of the host replaced") {
			t.Errorf("it says %+v", line)
		}
		if entries, err := r.Drive().ReadDir(elsewhere); err != nil || len(entries) > 0 {
			t.Errorf("there is something at its end: %v, %v", entries, err)
		}
	})
}

// exchangingTree is the file tree of a host with a user who acts as soon as the agent has created the
// directory.
type exchangingTree struct {
	host.Tree
	directory string
	user      func()
}

func (h exchangingTree) MakeDirectory(ctx context.Context, path string, access host.Access) error {
	err := h.Tree.MakeDirectory(ctx, path, access)
	if path == h.directory {
		h.user()
	}
	return err
}

// the node restricts shared directories only as needed, and restores them.
func TestInstallDir_SharedDirectoriesRestrictedUntilRemoval(t *testing.T) {
	t.Parallel()
	r := newRig(t, withForeignObjects).start()
	if line, _ := r.apply(guardedSpec()); line.Result == nil {
		t.Fatalf("%+v", line.Failure)
	}
	for _, directory := range nodespec.GuardedDirectories() {
		info, err := r.Drive().Stat(directory.Path)
		if err == nil && info.Access != directory.Access {
			t.Errorf("%s is %s", directory.Path, info.Access)
		}
	}
	r.removeNode()
	compareSnapshots(t, r.before, r.Snapshot())
}
