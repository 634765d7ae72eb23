package agent_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func (r *rig) runningShims() []host.Process {
	return slices.DeleteFunc(r.RunningProcesses(), func(p host.Process) bool { return p.Name != "shim.exe" || !nodespec.IsWithin(p.Path, nodespec.Root) })
}

// oneMoreShim starts one more shim from containerd's process, as for the pod of a DaemonSet.
func (r *rig) oneMoreShim(release nodespec.Release) {
	r.Helper()
	_, err := r.Spawn(release.Directory + `\shim.exe`)
	r.must(err)
}

//
func TestRemove_EndsContainerShims(t *testing.T) {
	t.Parallel()
	t.Run("all of them, before their files go", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		release := r.fullSpec().Releases[1]
		r.oneMoreShim(release)
		r.oneMoreShim(release)
		if n := len(r.runningShims()); n != 3 {
			t.Fatalf("%d shims run before the removal", n)
		}
		left := -1
		r.OnOperation(func(o fake.Operation) error {
			if o.Interface == "Files" && o.Method == "Remove" && (nodespec.IsWithin(o.Target, nodespec.ReleasesRoot) || nodespec.IsWithin(nodespec.ReleasesRoot, o.Target)) && left < 0 {
				left = len(r.runningShims())
			}
			return nil
		})
		steps := r.removeNode()
		if left != 0 {
			t.Errorf("%d shims run when their files are removed (-1: the files were not removed)", left)
		}
		kill := slices.Index(steps, "KillProcess shim.exe")
		remove := slices.IndexFunc(steps, func(s string) bool { return strings.HasPrefix(s, `RemovePath C:\k`) })
		if stop := slices.Index(steps, "StopService containerd"); stop < 0 || kill < stop || remove < kill {
			t.Errorf("steps: %q", steps)
		}
		compareSnapshots(t, r.before, r.Snapshot())
	})
	t.Run("those of a former release too", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		former := r.fullSpec().Releases[1]
		r.versions = versions{"containerd": "v2"}
		r.mustApply(r.fullSpec())
		if !slices.ContainsFunc(r.runningShims(), func(p host.Process) bool { return nodespec.IsWithin(p.Path, former.Directory) }) {
			t.Fatal("no shim runs from the former release")
		}
		r.removeNode()
		compareSnapshots(t, r.before, r.Snapshot())
	})
	t.Run("one that containerd starts while it is being stopped", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		release := r.fullSpec().Releases[1]
		late := false
		r.OnOperation(func(o fake.Operation) error {
			if o.Interface == "Services" && o.Method == "Stop" && o.Target == "containerd" && !late {
				late = true
				r.oneMoreShim(release)
			}
			return nil
		})
		r.removeNode()
		if !late {
			t.Fatal("containerd was not stopped")
		}
		compareSnapshots(t, r.before, r.Snapshot())
	})
	t.Run("but not a process of that name that is somebody else's", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		path := `C:\Program Files\Contoso\shim.exe`
		r.must(r.Drive().MkdirAll(`C:\Program Files\Contoso`))
		r.must(r.Drive().WriteFile(path, programContent("shim.exe", "v1")))
		r.start()
		r.configureHost()
		r.awaitServices()
		own, err := r.Spawn(path)
		r.must(err)
		r.checkNotEndedEarly(own.PID, func() { r.run("remove") })
	})
}

// Files of a mounted layer cannot be deleted, and only the container runtime unmounts the layer. R-064
func TestRemove_EndsPodsBeforeRuntime(t *testing.T) {
	t.Parallel()
	t.Run("after the kubelet, which would make them again", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		steps := r.removeNode()
		kubelet, end := slices.Index(steps, "StopService kubelet"), slices.Index(steps, "EndPods containerd")
		if runtime := slices.Index(steps, "StopService containerd"); kubelet < 0 || end < kubelet || runtime < end {
			t.Errorf("steps: %q", steps)
		}
		compareSnapshots(t, r.before, r.Snapshot())
	})
	t.Run("a pod that does not end is named, and the removal goes on", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		r.OnOperation(func(o fake.Operation) error {
			if o.Interface == "Sandboxes" && o.Method == "End" {
				return errors.New("hcs: the compute system does not answer")
			}
			return nil
		})
		var out bytes.Buffer
		_, err := r.Exec(r.ctx, fake.ExecRequest{Path: r.uploadAgent(), Args: []string{"remove"}, Stdout: &out, Stderr: &out})
		if err != nil && !errors.Is(err, fake.ErrProcessEnded) && !errors.Is(err, fake.ErrPoweredOff) {
			t.Fatal(err)
		}
		named := strings.Index(out.String(), "(first: monitoring/agent-x2z: ")
		if stopped := strings.LastIndex(out.String(), "StopService containerd"); named < 0 || stopped < named {
			t.Errorf("it says\n%s", out.String())
		}
	})
	t.Run("a folder that Windows denies while layers are mounted is deleted after the restart", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, func(o *fake.Options) {
			o.Features = map[string]host.FeatureState{"Containers": host.FeatureEnabled} // nothing else causes a restart
		}).start()
		r.configureHost()
		r.awaitServices()
		boot := r.BootID()
		r.OnOperation(func(o fake.Operation) error {
			if o.Interface == "Files" && o.Method == "Remove" && nodespec.IsWithin(o.Target, nodespec.ContainerdData) &&
				o.Process.Machine.BootID() == boot {
				return fmt.Errorf("remove %s: Access is denied: %w", o.Target, fs.ErrPermission)
			}
			return nil
		})
		r.removeNode()
		compareSnapshots(t, r.before, r.Snapshot())
		if r.BootID() == boot {
			t.Error("the host was not restarted")
		}
	})
	t.Run("a layer that a dead runtime left mounted needs no restart, nor do the files of Windows in others", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, func(o *fake.Options) {
			o.Features = map[string]host.FeatureState{"Containers": host.FeatureEnabled}
		}).start()
		r.configureHost()
		r.awaitServices()
		r.OnOperation(func(o fake.Operation) error {
			if o.Interface == "Sandboxes" {
				return errors.New("hcs: the compute system does not answer")
			}
			return nil
		})
		steps := r.removeNode()
		compareSnapshots(t, r.before, r.Snapshot())
		if again := slices.Index(steps, "RemovePath "+nodespec.ContainerdData); slices.Contains(steps[again+1:], steps[again]) {
			t.Errorf("the folder was not deleted at once: %q", steps)
		}
	})
	t.Run("a layer that stays mounted is deleted after the restart", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, func(o *fake.Options) {
			o.Features = map[string]host.FeatureState{"Containers": host.FeatureEnabled} // nothing else causes a restart
		}).start()
		r.configureHost()
		r.awaitServices()
		boot := r.BootID()
		r.OnOperation(func(o fake.Operation) error {
			if (o.Interface == "Sandboxes" && o.Method == "End" || o.Interface == "Layers") && o.Process.Machine.BootID() == boot {
				return errors.New("hcs: the compute system does not answer")
			}
			return nil
		})
		steps := r.removeNode()
		compareSnapshots(t, r.before, r.Snapshot())
		if restart := slices.Index(steps, "Reboot"); !slices.Contains(steps[restart+1:], "RemovePath "+nodespec.ContainerdData) {
			t.Errorf("the folder was not deleted after a restart: %q", steps)
		}
	})
}

// checkNotEndedEarly checks that the action does not end the process before the restart.
func (r *rig) checkNotEndedEarly(pid int, action func()) {
	r.Helper()
	r.OnOperation(func(o fake.Operation) error {
		if o.Interface == "Power" && !slices.ContainsFunc(r.RunningProcesses(), func(p host.Process) bool { return p.PID == pid }) {
			r.Errorf("process %d was ended before the restart", pid)
		}
		return nil
	})
	action()
}
