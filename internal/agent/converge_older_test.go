package agent_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Leftovers of WICD and its operator: programs directly in C:\k, services that run from there, and files with
// and without credentials.
var (
	legacyPrograms = map[string]string{
		`C:\k\windows-instance-config-daemon.exe`: "windows-instance-config-daemon.exe", `C:\k\containerd\containerd.exe`: "idle.exe",
		`C:\k\shim.exe`: "shim.exe", `C:\k\kubelet.exe`: "idle.exe", `C:\k\hybrid-overlay-node.exe`: "hybrid-overlay-node.exe",
		`C:\k\kube-proxy.exe`: "idle.exe", `C:\k\azure-cloud-node-manager.exe`: "idle.exe", `C:\k\containerd.exe`: "idle.exe",
	}
	legacyFiles = []string{
		`C:\k\bootstrap-kubeconfig`, `C:\k\wicd-kubeconfig`, `C:\k\wicd-certs\wicd-client-current.pem`, `C:\k\imported-certs.pem`, `C:\k\cloud.conf`,
		`C:\k\ca-bundle.crt`, `C:\k\kubelet.conf`, `C:\k\kubeconfig`, `C:\k\tls\certs\tls.key`, `C:\k\tls\windows-exporter-webconfig.yaml`,
		`C:\k\cni\config\ovnkube-client-2026-01-02.pem`, `C:\Temp\hns.psm1`, `C:\Temp\network-conf.ps1`,
	}
	legacyLogs = []string{`C:\var\log\kubelet\kubelet-20260101.log`, `C:\var\log\hybrid-overlay\hybrid-overlay.log`, legacyAgentLog}
	// klog creates a link to its current log.
	legacyAgentLog = `C:\var\log\wicd\windows-instance-config-daemon.exe.NODE-A.NT-AUTHORITY_SYSTEM.log.INFO.20260101-000000.4`
	foreignFiles   = []string{`C:\Temp\mine.ps1`, `C:\k\notes.txt`}
)

// newLegacyHost returns a host configured by the legacy operator and its agent. The host name is the node name.
func newLegacyHost(t *testing.T, change ...func(*rig)) *rig {
	t.Helper()
	r := newRig(t, func(o *fake.Options) {
		o.Name = "node-a"
		o.Features = map[string]host.FeatureState{nodespec.FeatureContainers: host.FeatureEnabled}
	})
	r.must(r.Boot(r.ctx))
	r.before = r.Snapshot()
	write := func(path string, content []byte) {
		r.must(r.Drive().MkdirAll(path[:strings.LastIndexByte(path, '\\')]))
		r.must(r.Drive().WriteFile(path, content))
	}
	for path, name := range legacyPrograms {
		write(path, programContent(name, "v0"))
	}
	for _, path := range slices.Concat(legacyFiles, legacyLogs, foreignFiles) {
		write(path, []byte("of the older operator: "+path))
	}
	r.must(r.Drive().Symlink(legacyAgentLog[strings.LastIndexByte(legacyAgentLog, '\\')+1:], serviceLog))
	r.must(r.Drive().MkdirAll(pki))
	h := r.Host()
	r.must(h.Environment.Set(r.ctx, "HTTPS_PROXY", "http://older.example:1"))
	r.must(h.Environment.Set(r.ctx, "HTTP_PROXY", "http://older.example:1"))
	for _, each := range change {
		each(r)
	}
	service := func(name, program string, dependencies ...string) {
		r.must(h.Services.Configure(r.ctx, host.ServiceConfig{
			Name: name, CommandLine: program, Description: nodespec.DescriptionPrefix + " " + name, StartType: host.StartManual, Dependencies: dependencies,
		}))
		r.must(h.Services.Start(r.ctx, name))
	}
	service("containerd", `C:\k\containerd.exe --run-service`)
	service("kubelet", `C:\k\kubelet.exe --windows-service`, "containerd")
	service("hybrid-overlay-node", `C:\k\hybrid-overlay-node.exe --windows-service`, "kubelet")
	service("kube-proxy", `C:\k\kube-proxy.exe --windows-service`, "hybrid-overlay-node")
	service("cloud-node-manager", `C:\k\azure-cloud-node-manager.exe --windows-service`)
	service(nodespec.ServiceAgent, `C:\k\windows-instance-config-daemon.exe controller --kubeconfig C:\k\wicd-kubeconfig`)
	_, err := r.Spawn(`C:\k\shim.exe`) // of a container, which survives containerd
	r.must(err)
	return r
}

func (r *rig) firstStep(spec nodespec.NodeSpec) string {
	r.Helper()
	p := r.runPlan(spec)
	if len(p.Steps) == 0 {
		return ""
	}
	return p.Steps[0].Name
}

// checkNoLegacyFiles checks that the host is a node, and that only logs of the legacy operator are left.
func (r *rig) checkNoLegacyFiles() {
	r.Helper()
	for path := range legacyPrograms {
		if info, err := r.Drive().Stat(path); err == nil && info.LinkTarget == "" {
			r.Errorf("%s is left", path)
		}
	}
	for _, path := range legacyFiles {
		if data, err := r.Drive().ReadFile(path); err == nil && strings.HasPrefix(string(data), "of the older operator") {
			r.Errorf("%s is left", path)
		}
	}
	if r.hasPaths(`C:\k\wicd-certs`) || r.hasPaths(`C:\k\tls`) {
		r.Error("a folder is left")
	}
	if !r.hasPaths(slices.Concat(legacyLogs, foreignFiles, []string{`C:\Temp`})...) {
		r.Error("a log, or what is somebody's own, is gone")
	}
	if log := r.readLog(); !strings.HasPrefix(log, "20") || !strings.Contains(log, "runs as a service") {
		r.Errorf("the agent's log is %q", log)
	}
	if older, err := r.Drive().ReadFile(legacyAgentLog); err != nil || string(older) != "of the older operator: "+legacyAgentLog {
		r.Errorf("the log of the older agent is %q (%v)", older, err)
	}
	if _, exists := r.Service("cloud-node-manager"); exists {
		r.Error("service cloud-node-manager is left")
	}
	for _, want := range r.fullSpec().Services {
		if service, _ := r.Service(want.Name); service.State != host.ServiceRunning || service.RunningCommandLine != want.CommandLine {
			r.Errorf("%s: %s %s", want.Name, service.State, service.RunningCommandLine)
		}
	}
	if value, exists := r.Snapshot().Environment["HTTP_PROXY"]; exists {
		r.Errorf("HTTP_PROXY is %s", value)
	}
}

//
func TestAdopt_ReplacesLegacyAgentWithoutRestart(t *testing.T) {
	t.Parallel()
	r := newLegacyHost(t)
	t.Run("the older agent is stopped first", func(t *testing.T) {
		if step := r.firstStep(newSpec(nil)); step != "StopService "+nodespec.ServiceAgent {
			t.Error(step)
		}
	})
	steps := r.configureHost()
	r.awaitServices()
	r.checkNoLegacyFiles()
	t.Run("credentials go by steps of their own, once the node's services run", func(t *testing.T) {
		last := slices.Index(steps, "StartService kube-proxy")
		for _, name := range []string{`C:\k\bootstrap-kubeconfig`, `C:\k\wicd-kubeconfig`, `C:\k\wicd-certs`, `C:\k\cni\config\ovnkube-client-2026-01-02.pem`} {
			if i := slices.Index(steps, "RemovePath "+name); i < last {
				t.Errorf("%s is step %d, the last service starts with step %d", name, i, last)
			}
		}
	})
	t.Run("nothing is restarted, and nothing is left to do", func(t *testing.T) {
		if p := r.runPlan(r.fullSpec()); len(p.Steps)+len(p.Needs) > 0 || r.Journal().Count(fake.KindReboot) > 0 {
			t.Errorf("%d restarts; %s", r.Journal().Count(fake.KindReboot), formatSteps(p))
		}
	})
	t.Run("removal leaves nothing of either operator", func(t *testing.T) {
		r.removeNode()
		got := r.Snapshot()
		for _, path := range append(slices.Clone(foreignFiles), `C:\Temp`, `C:\k`) {
			delete(got.Files, path)
		}
		compareSnapshots(t, r.before, got)
	})
}

// The kubelet's certificate from the legacy operator remains usable while it is valid and has the node's name.
func TestAdopt_KeepsMatchingKubeletCertificate(t *testing.T) {
	t.Parallel()
	donor := newConfiguredRig(t)
	link, err := donor.Drive().Stat(pki + `\kubelet-client-current.pem`)
	donor.must(err)
	pair, err := donor.Drive().ReadFile(link.LinkTarget)
	donor.must(err)
	for name, kept := range map[string]bool{"node-a": true, "node-b": false} {
		t.Run(fmt.Sprintf("of node %s, as a link: kept is %t", name, kept), func(t *testing.T) {
			t.Parallel()
			r := newLegacyHost(t, func(r *rig) {
				r.must(r.Drive().WriteFile(link.LinkTarget, pair))
				r.must(r.Host().Tree.Symlink(r.ctx, link.LinkTarget, pki+`\kubelet-client-current.pem`))
			})
			spec := newSpec(nil)
			spec.Identity.CommonName = "system:node:" + name
			line, steps := r.apply(spec)
			result, _ := r.mustResult(line, steps)
			if got := !slices.ContainsFunc(steps, func(step string) bool { return strings.HasPrefix(step, "RequestCertificate") }); got != kept {
				t.Errorf("needs %v, steps %v", result.Plan.Needs, steps)
			}
		})
	}
}

//
func TestAdopt_ContinuesAfterKill(t *testing.T) {
	t.Parallel()
	reference := newLegacyHost(t, addLegacySettings)
	counting := &killer{}
	counting.registerHook(reference)
	reference.configureHost()
	reference.awaitServices()
	want := withoutChance(reference.Snapshot())
	for n := range killPoints(counting.seen) {
		t.Run(fmt.Sprintf("before change %d", n), func(t *testing.T) {
			t.Parallel()
			r := newLegacyHost(t, addLegacySettings)
			k := &killer{n: n}
			k.registerHook(r)
			r.configureHost()
			r.awaitServices()
			t.Log("killed before " + k.at)
			r.checkNoLegacyFiles()
			compareSnapshots(t, want, withoutChance(r.Snapshot()))
		})
	}
}

// An interrupted adoption does not cause the removal to restore anything of the legacy operator.
func TestRemove_InterruptedAdoptionRestoresNothingLegacy(t *testing.T) {
	t.Parallel()
	for n := 5; n <= 60; n += 5 {
		t.Run(fmt.Sprintf("killed before change %d", n), func(t *testing.T) {
			t.Parallel()
			r := newLegacyHost(t)
			k := &killer{n: n}
			k.registerHook(r)
			r.configureUntil(func() bool { return k.at != "" })
			r.removeNode()
			t.Log("killed before " + k.at)
			got := r.Snapshot()
			maps.DeleteFunc(got.Files, func(path string, _ fake.FileSnapshot) bool {
				return nodespec.IsWithin(path, `C:\Temp`) || path == `C:\k` || path == `C:\k\notes.txt`
			})
			compareSnapshots(t, r.before, got)
		})
	}
}

// A host may be removed before its adoption. R-064
func TestRemove_RestoresUnadoptedLegacyHost(t *testing.T) {
	t.Parallel()
	returned := func(r *rig) {
		r.Helper()
		got := r.Snapshot()
		maps.DeleteFunc(got.Files, func(path string, _ fake.FileSnapshot) bool {
			return nodespec.IsWithin(path, `C:\Temp`) || path == `C:\k` || path == `C:\k\notes.txt` ||
				path == `C:\k\containerd.exe` || path == `C:\k\shim.exe` // elsewhere on real hosts
		})
		compareSnapshots(r.T, r.before, got)
	}
	reference := newLegacyHost(t)
	counting := &killer{}
	counting.registerHook(reference)
	steps := reference.removeNode()
	if steps[0] != "StopService "+nodespec.ServiceAgent || !reference.hasPaths(foreignFiles...) {
		t.Errorf("steps %v", steps)
	}
	returned(reference)
	for n := range killPoints(counting.seen) {
		t.Run(fmt.Sprintf("killed before change %d", n), func(t *testing.T) {
			t.Parallel()
			r := newLegacyHost(t)
			k := &killer{n: n}
			k.registerHook(r)
			r.removeNode()
			t.Log("killed before " + k.at)
			returned(r)
		})
	}
}

// A host without a legacy operator keeps files with the names of legacy files.
func TestAdopt_NonLegacyHostKeepsFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	for _, path := range []string{`C:\Temp\hns.psm1`, `C:\k\cloud.conf`} {
		r.must(r.Drive().MkdirAll(path[:strings.LastIndexByte(path, '\\')]))
		r.must(r.Drive().WriteFile(path, []byte("own")))
	}
	before := r.Snapshot()
	r.configureHost()
	if !r.hasPaths(`C:\Temp\hns.psm1`, `C:\k\cloud.conf`) {
		t.Error("it is gone")
	}
	r.removeNode()
	compareSnapshots(t, before, r.Snapshot())
	if line, _ := r.run("facts"); line.Type != agentapi.TypeResult {
		t.Errorf("%s %v", line.Type, line.Failure)
	}
}
