package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// addFiles adds files and all parent directories to the model.
func (m *model) addFiles(paths ...string) {
	for _, path := range paths {
		m.Files[path] = plan.FileFact{SHA256: "old " + path, Text: "old", Size: 60 << 20, Access: host.AccessInherited}
		for dir := path[:strings.LastIndexByte(path, '\\')]; dir != "C:"; dir = dir[:strings.LastIndexByte(dir,
			'\\')] {
			if _, exists := m.Files[dir]; !exists {
				m.Files[dir] = plan.FileFact{Directory: true, Access: host.AccessInherited}
			}
		}
	}
	for path, fact := range m.Files {
		if fact.Directory && path != nodespec.AgentRoot {
			fact.Entries = m.listEntries(path)
			m.Files[path] = fact
		}
	}
}

// run adds a running service.
func (m *model) run(config host.ServiceConfig) {
	m.Services[config.Name] = host.Service{ServiceConfig: config, State: host.ServiceRunning,
		RunningCommandLine: config.CommandLine, PID: 100 + len(m.Services)}
}

// withWMCB returns a host configured by an operator before WICD: with Docker, and without an agent.
func withWMCB() *model {
	m := newModel()
	m.Features["Containers"] = host.FeatureEnabled
	m.run(host.ServiceConfig{Name: "docker", CommandLine: `"C:\Program Files\Docker\dockerd.exe"`,
		StartType: host.StartAutomatic})
	for name, dependency := range map[string]string{"kubelet": "docker", "overlay": "kubelet", "kube-proxy": "overlay"} {
		m.run(host.ServiceConfig{
			Name: name, CommandLine: `"C:\k\` + name + `.exe" --windows-service`, StartType: host.StartAutomatic,
			Dependencies: []string{dependency},
		})
		m.addFiles(`C:\k\` + name + ".exe")
	}
	m.addFiles(`C:\k\kubelet.conf`, `C:\k\wmcb.exe`, `C:\k\bootstrap-kubeconfig`, `C:\k\cni\flannel.exe`,
		`C:\Temp\hns.psm1`, `C:\Temp\mine.ps1`,
		`C:\Windows\Temp\worker.ign`, `C:\k\notes`, `C:\var\log\hybrid-overlay\hybrid-overlay.log`, `C:\k\wicd\a`)
	m.Networks = []host.HNSNetwork{{Name: "OVN", Type: "Overlay", Subnet: "10.132.9.0/24"}}
	m.Identity.Current = &plan.CertificateFacts{CommonName: "system:node:a", Organization: []string{"system:nodes"},
		NotAfter: now.Add(-time.Hour)}
	return m
}

// withWICD returns a host configured by the last releases of the legacy operator, with a running agent.
func withWICD() *model {
	m := newModel()
	m.Features["Containers"] = host.FeatureEnabled
	for name, dependency := range map[string]string{"containerd": "", "kubelet": "containerd", "overlay": "kubelet",
		"kube-proxy": "overlay"} {
		config := host.ServiceConfig{
			Name: name, CommandLine: `C:\k\kube-log-runner.exe C:\k\` + name + `.exe --windows-service`,
			StartType:   host.StartManual,
			Description: nodespec.DescriptionPrefix + " " + name,
		}
		if dependency != "" {
			config.Dependencies = []string{dependency}
		}
		m.run(config)
		m.addFiles(`C:\k\` + name + ".exe")
	}
	m.run(host.ServiceConfig{Name: "cloud-node-manager",
		CommandLine: `C:\k\azure-cloud-node-manager.exe --windows-service`,
		Description: nodespec.DescriptionPrefix + " cloud-node-manager", StartType: host.StartManual})
	m.run(host.ServiceConfig{Name: nodespec.ServiceAgent, StartType: host.StartAutomatic,
		CommandLine: `C:\k\windows-instance-config-daemon.exe controller --windows-service --log-dir C:\var\log\wicd --kubeconfig C:\k\wicd-kubeconfig`})
	m.addFiles(`C:\k\windows-instance-config-daemon.exe`, `C:\k\kube-log-runner.exe`, `C:\k\azure-cloud-node-manager.exe`,
		`C:\k\kubelet.conf`,
		`C:\k\bootstrap-kubeconfig`, `C:\k\wicd-kubeconfig`, `C:\k\wicd-certs\wicd-client-current.pem`,
		`C:\k\imported-certs.pem`,
		`C:\k\tls\certs\tls.key`, `C:\k\cni\config\ovnkube-client-2026-01-01.pem`, `C:\Temp\network-conf.ps1`,
		`C:\Temp\mine.ps1`, `C:\k\notes`,
		`C:\var\log\wicd\wicd.log`, `C:\var\pki\kubelet-client-current.pem`, `C:\k\wicd\a`)
	m.Environment["HTTPS_PROXY"], m.Environment["HTTP_PROXY"] = "http://old:1", "http://old:1"
	m.Processes = []host.Process{
		{PID: m.Services["kubelet"].PID, Name: "kubelet.exe", Path: `C:\k\kubelet.exe`},
		{PID: m.Services[nodespec.ServiceAgent].PID, Name: "windows-instance-config-daemon.exe",
			Path: `C:\k\windows-instance-config-daemon.exe`},
		{PID: 7, Name: "containerd.exe", Path: `C:\k\containerd.exe`}, // like a shim, which outlives its service
	}
	m.Networks = []host.HNSNetwork{{Name: "OVN", Type: "Overlay", Subnet: "10.132.1.0/24"}}
	m.Identity.Current = &plan.CertificateFacts{CommonName: "system:node:a", Organization: []string{"system:nodes"},
		NotAfter: now.Add(time.Hour)}
	return m
}

// endServiceProcesses removes the processes that end with a stopped service.
func endServiceProcesses(m *model, step plan.Step) {
	if stop, ok := step.Operation.(plan.StopService); ok {
		pid := m.Services[stop.Service].PID
		m.Processes = slices.DeleteFunc(slices.Clone(m.Processes), func(process host.Process) bool {
			return process.PID == pid
		})
	}
}

//
func TestAdoption_LegacyHostBecomesNode(t *testing.T) {
	for generation, newModel := range map[string]func() *model{"WMCB": withWMCB, "WICD": withWICD} {
		for kill := -1; kill < 60; kill++ {
			t.Run(fmt.Sprintf("%s, with the agent killed after step %d", generation, kill), func(t *testing.T) {
				m := newModel()
				m.before = func(step plan.Step) {
					checkAdoptionStep(t, m, step)
					endServiceProcesses(m, step)
				}
				steps := convergeModel(t, m, smallSpec(), kill)
				m.before = nil
				checkAdopted(t, m)
				if got, want := slices.Contains(namesOfSteps(steps), "RequestCertificate system:node:a"),
					generation == "WMCB"; got != want {
					t.Errorf("a new certificate was asked for: %t; that of the host is of use: %t", got, !want)
				}
				restoreModel(t, m, -1)
				checkRestored(t, m, generation)
			})
		}
	}
	t.Run("what is somebody's own is remembered", func(t *testing.T) {
		m := newModel()
		m.Files[`C:\k\kubelet.exe`] = plan.FileFact{SHA256: "own"}
		m.Files[`C:\Temp\hns.psm1`] = plan.FileFact{SHA256: "own"}
		m.Environment["HTTPS_PROXY"] = "own"
		m.Services["kube-proxy"] = host.Service{ServiceConfig: host.ServiceConfig{Name: "kube-proxy",
			CommandLine: `D:\own.exe`}}
		ledger := plan.Record(m.Facts, smallSpec())
		if !ledger.Paths[`C:\k\kubelet.exe`].Existed || ledger.Services["kube-proxy"] == nil ||
			ledger.Environment["HTTPS_PROXY"] == nil {
			t.Errorf("%+v", ledger)
		}
		if _, exists := ledger.Paths[`C:\Temp\hns.psm1`]; exists {
			t.Error("a file is taken for an older operator's on a host that had none")
		}
	})
}

// checkAdoptionStep checks the host before each step of an adoption.
func checkAdoptionStep(t *testing.T, m *model, step plan.Step) {
	t.Helper()
	foreign := strings.HasPrefix(m.Services[nodespec.ServiceAgent].RunningCommandLine,
		`C:\k\windows-instance-config-daemon.exe`)
	if foreign && step.Name != "StopService "+nodespec.ServiceAgent {
		t.Errorf("%s comes before the older agent is stopped", step.Name)
	}
	path := ""
	switch o := step.Operation.(type) {
	case plan.MakeLink:
		path = o.Link.Path
	case plan.RemovePath:
		path = o.Path
		if path == nodespec.Root {
			t.Error("C:\\k is removed")
		}
		for _, service := range smallSpec().Services {
			if fact := m.Services[service.Name]; fact.State != host.ServiceRunning ||
				fact.RunningCommandLine != service.CommandLine {
				t.Errorf("%s comes before service %s runs", step.Name, service.Name)
			}
		}
	}
	for _, service := range m.Services {
		if path != "" && strings.Contains(strings.ToLower(service.RunningCommandLine), strings.ToLower(path)) &&
			strings.HasSuffix(path, ".exe") {
			t.Errorf("%s touches a program that service %s runs", step.Name, service.Name)
		}
	}
	for _, process := range m.Processes {
		if path != "" && nodespec.IsWithin(process.Path, path) {
			t.Errorf("%s touches a program that process %d runs", step.Name, process.PID)
		}
	}
}

// checkAdopted checks that a host is a node, and that only the logs of a legacy operator remain.
func checkAdopted(t *testing.T, m *model) {
	t.Helper()
	for _, service := range smallSpec().Services {
		if fact := m.Services[service.Name]; fact.State != host.ServiceRunning ||
			fact.RunningCommandLine != service.CommandLine {
			t.Errorf("service %s is %+v", service.Name, fact)
		}
	}
	for path, fact := range m.Files {
		if strings.HasPrefix(fact.SHA256, "old ") && !strings.HasPrefix(path, nodespec.LogRoot) &&
			path != `C:\Temp\mine.ps1` && path != `C:\k\notes` &&
			!strings.HasPrefix(path, `C:\var\pki`) && !nodespec.IsWithin(path, nodespec.AgentRoot) {
			t.Errorf("%s is left", path)
		}
	}
	for _, path := range []string{`C:\Temp`, `C:\Temp\mine.ps1`, `C:\k\notes`} {
		if _, exists := m.Files[path]; !exists {
			t.Errorf("%s is gone", path)
		}
	}
	for path, before := range m.Ledger.Paths {
		if before.Existed && !before.Directory {
			t.Errorf("%s is kept, though it is of no use to anybody", path)
		}
	}
	if _, exists := m.Services["cloud-node-manager"]; exists {
		t.Error("a service of the older operator is left")
	}
	if value, exists := m.Environment["HTTP_PROXY"]; exists {
		t.Errorf("HTTP_PROXY is %s", value)
	}
}

// checkRestored checks that only foreign objects remain after a removal.
func checkRestored(t *testing.T, m *model, generation string) {
	t.Helper()
	want := map[string][]string{"WMCB": {"docker"}}[generation]
	for name := range m.Services {
		if !slices.Contains(want, name) {
			t.Errorf("service %s is left", name)
		}
	}
	if len(m.Networks)+len(m.Environment) > 0 {
		t.Errorf("left: %v, %v", m.Networks, m.Environment)
	}
	var left []string
	for path := range m.Files {
		if !nodespec.IsWithin(path, nodespec.AgentRoot) && path != nodespec.Root {
			left = append(left, path)
		}
	}
	slices.Sort(left)
	expected := []string{`C:\Temp`, `C:\Temp\mine.ps1`, `C:\k\notes`}
	if generation == "WMCB" {
		expected = append(expected, `C:\Windows`, `C:\Windows\Temp`)
	}
	slices.Sort(expected)
	if !slices.Equal(left, expected) {
		t.Errorf("left %q, want %q", left, expected)
	}
}
