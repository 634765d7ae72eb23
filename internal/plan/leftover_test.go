package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// leftBehind is a host that an older operator configured with WMCB: with Docker, and without an agent.
func leftBehind() *model {
	m := fresh()
	m.Features["Containers"] = host.FeatureEnabled
	for name, dependency := range map[string]string{"kubelet": "docker", "overlay": "kubelet", "kube-proxy": "overlay"} {
		m.Services[name] = host.Service{ServiceConfig: host.ServiceConfig{
			Name: name, CommandLine: `"C:\k\` + name + `.exe" --windows-service`, StartType: host.StartAutomatic, Dependencies: []string{dependency},
		}, State: host.ServiceRunning, RunningCommandLine: `"C:\k\` + name + `.exe" --windows-service`}
		m.Files[`C:\k\`+name+".exe"] = plan.FileFact{SHA256: "old " + name, Size: 60 << 20}
	}
	m.Files[`C:\k\kubelet.conf`] = plan.FileFact{SHA256: "old", Text: "old"}
	m.Files[`C:\k\wmcb.exe`] = plan.FileFact{SHA256: "old wmcb"}
	m.Files[nodespec.Root] = plan.FileFact{Directory: true, Access: host.AccessInherited,
		Entries: []string{"kube-proxy.exe", "kubelet.conf", "kubelet.exe", "overlay.exe", "wicd", "wmcb.exe"}}
	m.Networks = []host.HNSNetwork{{Name: "OVN", Type: "Overlay", Subnet: "10.132.9.0/24"}}
	return m
}

//
func TestAHostThatAnOlderOperatorLeftBecomesANode(t *testing.T) {
	for kill := -1; kill < 40; kill++ {
		t.Run(fmt.Sprintf("with the agent killed after step %d", kill), func(t *testing.T) {
			m := leftBehind()
			running := func(path string) bool {
				return slices.ContainsFunc([]string{"kubelet", "overlay", "kube-proxy"}, func(name string) bool {
					return strings.Contains(m.Services[name].RunningCommandLine, path)
				})
			}
			m.before = func(step plan.Step) {
				if link, ok := step.Operation.(plan.MakeLink); ok && running(link.Link.Path) {
					t.Errorf("%s replaces a program that runs", step.Name)
				}
			}
			converge(t, m, node(), kill)
			for _, service := range node().Services {
				if fact := m.Services[service.Name]; fact.State != host.ServiceRunning || fact.RunningCommandLine != service.CommandLine {
					t.Errorf("service %s is %+v", service.Name, fact)
				}
			}
			for path, before := range m.Ledger.Paths {
				if before.Existed && !before.Directory {
					t.Errorf("%s is kept, though it is of no use to anybody", path)
				}
			}
			giveBack(t, m, -1)
			if len(m.Services) > 0 || len(m.Networks) > 0 {
				t.Errorf("left: %v, %v", m.Services, m.Networks)
			}
			if _, there := m.Files[`C:\k\wmcb.exe`]; !there {
				t.Error("a file that is nothing of a node's was removed")
			}
		})
	}
	t.Run("what is somebody's own is remembered", func(t *testing.T) {
		m := fresh()
		m.Files[`C:\k\kubelet.exe`] = plan.FileFact{SHA256: "own"}
		m.Services["kube-proxy"] = host.Service{ServiceConfig: host.ServiceConfig{Name: "kube-proxy", CommandLine: `D:\own.exe`}}
		ledger := plan.Record(m.Facts, node())
		if !ledger.Paths[`C:\k\kubelet.exe`].Existed || ledger.Services["kube-proxy"] == nil {
			t.Errorf("%+v", ledger)
		}
	})
}
