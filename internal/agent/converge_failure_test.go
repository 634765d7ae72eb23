package agent_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func (r *rig) checkFailure(line agentapi.Line, reason agentapi.Reason, words ...string) {
	r.Helper()
	if line.Type != agentapi.TypeFailure || line.Failure.Reason != reason {
		r.Fatalf("got %s %v, want the failure %s", line.Type, line.Failure, reason)
	}
	for _, word := range words {
		if !strings.Contains(line.Failure.Error(), word) {
			r.Errorf("the message does not say %q: %s", word, line.Failure.Error())
		}
	}
}

func TestApply_FullDiskReported(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	args := r.sendSpec(newSpec(nil))
	restore := r.FillDisk(8 << 10)
	line, _ := r.run(append([]string{"apply"}, args...)...)
	r.checkFailure(line, agentapi.ReasonDiskFull, "not enough space")
	restore()
	r.configureHost()
	if p := r.runPlan(r.fullSpec()); len(p.Steps)+len(p.Needs) != 0 {
		t.Error(formatSteps(p))
	}
}

func TestApply_ServiceStartFailureReported(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	r.must(r.Host().Services.Stop(r.ctx, "kubelet"))
	restore := r.FailServiceStart("kubelet", 255)
	line, _ := r.apply(r.fullSpec())
	r.checkFailure(line, agentapi.ReasonServiceFailed, "StartService kubelet", "255", `C:\var\log\kubelet`)
	restore()
	r.mustApply(r.fullSpec())
}

func TestApply_ServiceExitAfterStartReported(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	spec := r.fullSpec()
	spec.Files[1].Content = "broken\n"
	started := r.countEntries(fake.KindService, "containerd runs")
	// The agent queries the service only after the service has stopped.
	r.OnOperation(func(o fake.Operation) error {
		if o.Interface != "Services" || o.Method != "Query" || r.countEntries(fake.KindService, "containerd runs") == started {
			return nil
		}
		return r.WaitFor(r.ctx, func(m *fake.Machine) bool {
			service, _ := m.Service("containerd")
			return service.State == host.ServiceStopped
		})
	})
	line, _ := r.apply(spec)
	r.checkFailure(line, agentapi.ReasonServiceFailed, "containerd", "exit code 2", `C:\var\log\containerd`)
}

func TestApply_MissingNetworkTimesOut(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	args := r.sendSpec(r.fullSpec())
	r.must(r.Host().Networks.DeleteNetwork(r.ctx, hnsNetwork)) // hybrid-overlay-node creates the network only when it starts
	line, elapsed := r.runStepping(append([]string{"apply"}, args...)...)
	r.checkFailure(line, agentapi.ReasonStepFailed, "AwaitNetwork", hnsNetwork, podSubnet, "5m0s")
	if elapsed < timeouts.NetworkTimeout || elapsed > timeouts.NetworkTimeout+stepOfVerbs {
		t.Errorf("after %s", elapsed)
	}
}

func TestApply_DamagedPayloadDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	args := r.sendSpec(newSpec(nil))
	archive := args[len(args)-1]
	data, err := r.Drive().ReadFile(archive)
	r.must(err)
	data[len(data)/2] ^= 1
	r.must(r.Drive().WriteFile(archive, data))
	line, _ := r.run(append([]string{"apply"}, args...)...)
	r.checkFailure(line, agentapi.ReasonPayloadCorrupted)
	if _, err := r.Drive().Stat(archive); err == nil {
		t.Error("the damaged archive lies there still, so the operator would not send it again")
	}
	r.configureHost()
}

func TestApply_ReplacesDamagedReleaseFile(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	release := versions{}.releaseOf("kubelet")
	r.must(r.Host().Services.Stop(r.ctx, "kubelet"))
	content := bytes.Clone(programContent("kubelet.exe", "v1"))
	content[len(content)-1] ^= 1
	r.must(r.Drive().WriteFile(release.Path(release.Files[0]), content))
	line, _ := r.run("facts")
	if path := line.Result.Facts.Payload[release.Files[0].SHA256]; path != "" {
		t.Fatalf("the damaged file passes for the good one: %s", path)
	}
	r.configureHost()
	if data, _ := r.Drive().ReadFile(release.Path(release.Files[0])); !bytes.Equal(data, programContent("kubelet.exe", "v1")) {
		t.Error("it was not replaced")
	}
}

func TestApply_LargeForeignFileRejected(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	r.uploadAgent()
	r.must(r.Drive().WriteFile(`C:\k\kubelet.exe`, make([]byte, 2<<20)))
	line, _ := r.apply(newSpec(nil))
	r.checkFailure(line, agentapi.ReasonStepFailed, `C:\k\kubelet.exe`, "move it away")
	if _, exists := r.Service("containerd"); exists || r.Journal().Count(fake.KindFeature) > 0 {
		t.Error("the host was changed before the agent knew that it could give it back")
	}
}

func TestCommand_InvalidInputRejected(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	r.uploadAgent()
	r.must(r.Drive().WriteFile(nodespec.InboxSpec("000000000000"), []byte("{")))
	r.must(r.Drive().WriteFile(nodespec.InboxSpec("111111111111"), []byte(`{"schema":99}`)))
	for what, args := range map[string][]string{
		"no verb":                     {},
		"an unknown verb":             {"dance"},
		"apply without a spec":        {"apply"},
		"an unknown flag":             {"facts", "--spec", "x"},
		"a word too many":             {"verify", "now"},
		"a spec that is not there":    {"apply", "--spec", `C:\k\wicd\inbox\none.json`},
		"a spec that is no JSON":      {"apply", "--spec", nodespec.InboxSpec("000000000000")},
		"a spec of another version":   {"plan", "--spec", nodespec.InboxSpec("111111111111")},
		"verify on a host without us": {"verify"},
	} {
		t.Run(what, func(t *testing.T) {
			line, _ := r.run(args...)
			if line.Type != agentapi.TypeFailure || line.Failure.Reason != agentapi.ReasonInvalidInput {
				t.Errorf("%s %v", line.Type, line.Failure)
			}
		})
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	t.Run("a verb that lives keeps others out, and is named", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		r.writeLock("sshd.exe")
		for _, name := range []string{"verify", "remove"} {
			line, _ := r.run(name)
			r.checkFailure(line, agentapi.ReasonAgentBusy, "command apply", "process ")
		}
		if line, _ := r.run("facts"); line.Type != agentapi.TypeResult {
			t.Error("facts change nothing and need not wait")
		}
	})
	t.Run("that of another boot is nobody's", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		r.writeLock("sshd.exe")
		data, err := r.Drive().ReadFile(nodespec.LockPath)
		r.must(err)
		r.must(r.Drive().WriteFile(nodespec.LockPath, bytes.ReplaceAll(data, []byte(r.BootID()), []byte("earlier"))))
		r.mustVerify()
	})
	t.Run("that of a process which is another program now is nobody's", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		r.writeLock("sshd.exe")
		data, err := r.Drive().ReadFile(nodespec.LockPath)
		r.must(err)
		r.must(r.Drive().WriteFile(nodespec.LockPath, bytes.ReplaceAll(data, []byte("sshd.exe"), []byte("wicd.exe"))))
		r.mustVerify()
	})
	t.Run("the lock of a killed verb with the process ID of the agent's service is nobody's", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		pid := r.killWithLock()
		r.must(r.Host().Services.Stop(r.ctx, nodespec.ServiceAgent))
		r.ReuseProcessID(pid)
		r.must(r.Host().Services.Start(r.ctx, nodespec.ServiceAgent))
		if service, _ := r.Service(nodespec.ServiceAgent); service.PID != pid {
			t.Fatalf("the service is process %d, not %d", service.PID, pid)
		}
		r.mustVerify()
	})
	t.Run("the service with the process ID of a killed verb repairs the host", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		pid := r.killWithLock()
		r.must(r.Host().Services.Stop(r.ctx, nodespec.ServiceAgent))
		r.must(r.Drive().WriteFile(`C:\k\cni\cni.conf`, []byte("other")))
		r.ReuseProcessID(pid)
		r.must(r.Host().Services.Start(r.ctx, nodespec.ServiceAgent))
		r.advanceTime(timeouts.DriftCheckInterval)
		if data, err := r.Drive().ReadFile(`C:\k\cni\cni.conf`); err != nil || string(data) == "other" {
			t.Errorf("the service repairs nothing: %q, %v", data, err)
		}
	})
	t.Run("one that nobody can read is nobody's", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		r.must(r.Drive().WriteFile(nodespec.LockPath, []byte("{")))
		r.mustVerify()
	})
}

// killWithLock runs a command, kills it while it holds the lock, and returns the process ID.
func (r *rig) killWithLock() (pid int) {
	r.Helper()
	remove := r.OnOperation(func(o fake.Operation) error {
		if o.String() != "Files.Remove "+nodespec.LockPath || o.Process.Service != "" {
			return nil
		}
		pid = o.Process.PID
		o.Process.Kill()
		return errKilled
	})
	defer remove()
	r.run("verify")
	if _, err := r.Drive().Stat(nodespec.LockPath); err != nil || pid == 0 {
		r.Fatalf("process %d left no lock: %v", pid, err)
	}
	return pid
}

func (r *rig) mustVerify() {
	r.Helper()
	line, _ := r.run("verify")
	if line.Type != agentapi.TypeResult {
		r.Fatalf("%s %v", line.Type, line.Failure)
	}
	if _, err := r.Drive().Stat(nodespec.LockPath); err == nil {
		r.Error("the lock was not given back")
	}
}

func TestVerify_ReportsFailedChecks(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	h := r.Host()
	r.must(h.Services.Stop(r.ctx, "kubelet"))
	r.must(h.Networks.DeleteNetwork(r.ctx, hnsNetwork))
	r.must(r.Drive().WriteFile(`C:\k\cni\cni.conf`, []byte("other")))
	spec := r.fullSpec()
	for i := range spec.Checks {
		spec.Checks[i].Timeout = 0
	}
	data, err := spec.Encode()
	r.must(err)
	r.must(r.Drive().WriteFile(nodespec.SpecPath, data))
	line, _ := r.run("verify")
	wrong := map[string]string{}
	for _, check := range line.Result.Checks {
		if !check.Passed {
			wrong[check.Name] = check.Message
		}
	}
	for name, words := range map[string]string{
		"KubeletRuns": "is not running", "KubeletHealthy": "does not respond", "HNSNetworkReady": "does not exist",
		"CNIConfigured": "does not have the expected content", "EndpointCanBeMade": "create a test endpoint", "ExporterServes": "does not respond",
	} {
		if !strings.Contains(wrong[name], words) {
			t.Errorf("%s: %q does not say %q", name, wrong[name], words)
		}
	}
	if wrong["ContainerRuntimeReady"] != "" {
		t.Error(wrong["ContainerRuntimeReady"])
	}
}

func TestRemove_UnchangedHostNeedsNoSteps(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	if steps := r.removeNode(); len(steps) != 0 {
		t.Error(steps)
	}
	compareSnapshots(t, r.before, r.Snapshot())
}
