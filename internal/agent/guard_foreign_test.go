package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// guarded returns the small node with the folders that every node has outside of C:\k.
func guarded() nodespec.NodeSpec {
	spec := newSpec(nil)
	for i, directory := range spec.Directories {
		for _, each := range nodespec.GuardedDirectories() {
			if directory.Path == each.Path {
				spec.Directories[i] = each
			}
		}
	}
	return spec
}

// taken has a user of the host make a folder before the node does.
func (r *rig) taken(path string) {
	r.Helper()
	r.must(r.Drive().MkdirAll(path))
	r.must(r.Drive().GiveTo("joe", path))
}

// expectRefused fails unless the verb was refused because of the path, with what to do, and nothing secret is at any
// of the places.
func (r *rig) expectRefused(line verb.Line, path string, places ...string) {
	r.Helper()
	if line.Failure == nil || !strings.Contains(line.Failure.Message, path) ||
		!strings.Contains(line.Failure.Message, "move it away") {
		r.Errorf("it says %+v", line)
	}
	for _, place := range places {
		if entries, err := r.Drive().ReadDir(place); err == nil && len(entries) > 0 {
			r.Errorf("there is something in %s: %v", place, entries)
		}
	}
}

// Any user of a Windows host may make folders in C:\, and below what the node keeps there are the kubelet's key and the
// Secrets of pods.
func TestAHostOnWhichAUserHasTheNodesFoldersIsRefused(t *testing.T) {
	t.Parallel()
	const elsewhere = `C:\Users\joe\elsewhere`
	type plant func(r *rig, path string)
	for what, plant := range map[string]plant{
		"a folder of a user's": func(r *rig, path string) { r.taken(path) },
		"a junction to one": func(r *rig, path string) {
			r.must(r.Drive().MkdirAll(elsewhere))
			r.must(r.Drive().MkdirAll(path[:strings.LastIndexByte(path, '\\')]))
			r.must(r.Drive().Symlink(elsewhere, path))
		},
		"a file": func(r *rig, path string) { r.plant(path, "x") },
	} {
		for _, directory := range nodespec.GuardedDirectories() {
			t.Run(what+" at "+directory.Path, func(t *testing.T) {
				t.Parallel()
				r := newRig(t).start()
				plant(r, directory.Path)
				r.expectRefused(r.land("facts"), directory.Path, elsewhere)
				if info, err := r.Drive().Stat(nodespec.Root); err == nil {
					t.Errorf("the host was changed: %+v", info)
				}
				r.must(r.Drive().RemoveAll(directory.Path))
				if line := r.land("facts"); line.Result == nil {
					t.Errorf("once it is away it fails, too: %v", line.Failure)
				}
			})
		}
	}
	t.Run("a folder of a user's in the kubelet's", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).start()
		r.taken(`C:\var\lib\kubelet\pods`)
		r.expectRefused(r.land("facts"), `C:\var\lib\kubelet\pods`)
	})
}

// Somebody may be quicker than the operator: the folders are looked at again before anything is written below.
func TestAFolderThatAUserMakesAfterTheFirstLookIsRefused(t *testing.T) {
	t.Parallel()
	const elsewhere, pods = `C:\Users\joe\elsewhere`, `C:\var\lib\kubelet`
	for name, user := range map[string]func(r *rig){
		"a folder": func(r *rig) { r.taken(`C:\var`) },
		"a junction": func(r *rig) {
			r.must(r.Drive().MkdirAll(elsewhere))
			r.must(r.Drive().Symlink(elsewhere, `C:\var`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).start()
			r.land("facts")
			user(r)
			line, _ := r.apply(guarded())
			r.expectRefused(line, `C:\var`, elsewhere, pods)
		})
	}
	t.Run("a folder that is exchanged while it is being closed", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).start()
		r.land("facts")
		r.must(r.Drive().MkdirAll(elsewhere))
		r.bend(func(h *host.Host) {
			h.Tree = exchangingTree{h.Tree, func() {
				r.must(r.Drive().RemoveAll(`C:\var`))
				r.must(r.Drive().Symlink(elsewhere, `C:\var`))
			}}
		})
		line, _ := r.apply(guarded())
		if line.Failure == nil || !strings.Contains(line.Failure.Message, "was replaced") {
			t.Errorf("it says %+v", line)
		}
		if entries, err := r.Drive().ReadDir(elsewhere); err != nil || len(entries) > 0 {
			t.Errorf("there is something at its end: %v, %v", entries, err)
		}
	})
}

// exchangingTree is the file tree of a host with a user who exchanges C:\var as soon as it is there.
type exchangingTree struct {
	host.Tree
	user func()
}

func (h exchangingTree) MakeDirectory(ctx context.Context, path string, access host.Access) error {
	err := h.Tree.MakeDirectory(ctx, path, access)
	if path == `C:\var` {
		h.user()
	}
	return err
}

// of folders that others use too, the node takes only what it needs, and gives it back.
func TestFoldersThatTheNodeSharesAreClosedUntilTheHostIsGivenBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, used).start()
	if line, _ := r.apply(guarded()); line.Result == nil {
		t.Fatalf("%+v", line.Failure)
	}
	for _, directory := range nodespec.GuardedDirectories() {
		info, err := r.Drive().Stat(directory.Path)
		if err == nil && info.Access != directory.Access {
			t.Errorf("%s is %s", directory.Path, info.Access)
		}
	}
	r.remove()
	compare(t, r.before, r.Snapshot())
}
