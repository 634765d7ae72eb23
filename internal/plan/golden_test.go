package plan_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; `go test ./internal/plan -update` writes it", err)
	}
	if got != string(want) {
		t.Errorf("%s differs; if that is meant, run `go test ./internal/plan -update` and read the difference. Got:\n%s",
			path, got)
	}
}

// configured returns a host configured as the small node.
func configured(t *testing.T) (*model, nodespec.NodeSpec) {
	t.Helper()
	m := fresh()
	converge(t, m, node(), -1)
	spec := node()
	spec.Network.PodSubnet = m.subnet
	return m, spec
}

func TestGoldenFirstConfiguration(t *testing.T) {
	m, spec := fresh(), node()
	m.Ledger = plan.Record(m.Facts, spec)
	var story strings.Builder
	tell := func(heading string) plan.Plan {
		p := plan.Make(m.Facts, spec)
		story.WriteString("# " + heading + "\n" + text(p) + "\n")
		for _, step := range p.Steps {
			m.do(step)
		}
		return p
	}
	tell("a fresh host")
	tell("after the restart")
	spec.Identity.Certificate = nodeCertificate()
	m.subnet = "10.132.1.0/24"
	tell("with the certificate")
	spec.Network.PodSubnet = m.subnet
	tell("with the pod subnet")
	tell("with the endpoint's address")
	if last := tell("at the end"); len(last.Steps)+len(last.Needs) > 0 {
		t.Error("it does not end")
	}
	golden(t, "first-configuration", story.String())
}

func TestGoldenChangedComponent(t *testing.T) {
	m, spec := configured(t)
	addRelease(&spec, "kubelet", "v2")
	m.Ledger = plan.Record(m.Facts, spec)
	first := plan.Make(m.Facts, spec)
	for _, step := range first.Steps {
		m.do(step)
	}
	golden(t, "changed-component", "# kubelet v2\n"+text(first)+"\n# then\n"+text(plan.Make(m.Facts, spec)))
}

func TestGoldenDriftedService(t *testing.T) {
	m, spec := configured(t)
	drifted := m.Services["containerd"]
	drifted.CommandLine += " --log-level debug"
	m.Services["containerd"] = drifted
	described := m.Services["kube-proxy"]
	described.Description = "mine"
	m.Services["kube-proxy"] = described
	golden(t, "drifted-service", text(plan.Make(m.Facts, spec)))
}

func TestGoldenRemoval(t *testing.T) {
	m := fresh()
	m.Services["kube-proxy"] = host.Service{
		ServiceConfig: host.ServiceConfig{Name: "kube-proxy", CommandLine: "own.exe", StartType: host.StartAutomatic},
		State:         host.ServiceStopped,
	}
	converge(t, m, node(), -1)
	m.Processes = []host.Process{
		{PID: 7, Name: "shim.exe", Path: `C:\k\releases\containerd-v1\shim.exe`},
		{PID: 8, Name: "wicd.exe", Path: `C:\k\wicd\0123456789ab\wicd.exe`},
	}
	first := plan.Remove(m.Facts)
	for _, step := range first.Steps {
		m.do(step)
	}
	golden(t, "removal", "# the services\n"+text(first)+"\n# then\n"+text(plan.Remove(m.Facts)))
}

func TestGoldenTakeOver(t *testing.T) {
	for name, m := range map[string]*model{"wicd": withWICD(), "wmcb": withWMCB()} {
		spec := node()
		m.Ledger = plan.Record(m.Facts, spec)
		m.before = func(step plan.Step) { stops(m, step) }
		var story strings.Builder
		tell := func(heading string) {
			p := plan.Make(m.Facts, spec)
			story.WriteString("# " + heading + "\n" + text(p) + "\n")
			for _, step := range p.Steps {
				m.do(step)
			}
		}
		tell("a host of an older operator")
		spec.Identity.Certificate = nodeCertificate()
		m.subnet = "10.132.1.0/24"
		spec.Network.PodSubnet = m.subnet
		m.stop("overlay")
		tell("with what it needs")
		tell("with the endpoint's address")
		tell("when the new services run")
		golden(t, "take-over-"+name, story.String())
	}
}
