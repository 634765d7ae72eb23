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

func compareGolden(t *testing.T, name, got string) {
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

// newConfiguredModel returns a host configured as the small node.
func newConfiguredModel(t *testing.T) (*model, nodespec.NodeSpec) {
	t.Helper()
	m := newModel()
	convergeModel(t, m, smallSpec(), -1)
	spec := smallSpec()
	spec.Network.PodSubnet = m.subnet
	return m, spec
}

func TestGoldenFirstConfiguration(t *testing.T) {
	m, spec := newModel(), smallSpec()
	m.Ledger = plan.Record(m.Facts, spec)
	var transcript strings.Builder
	record := func(heading string) plan.Plan {
		p := plan.Make(m.Facts, spec)
		transcript.WriteString("# " + heading + "\n" + formatPlan(p) + "\n")
		for _, step := range p.Steps {
			m.applyStep(step)
		}
		return p
	}
	record("a fresh host")
	record("after the restart")
	spec.Identity.Certificate = nodeCertificate()
	m.subnet = "10.132.1.0/24"
	record("with the certificate")
	spec.Network.PodSubnet = m.subnet
	record("with the pod subnet")
	record("with the endpoint's address")
	if last := record("at the end"); len(last.Steps)+len(last.Needs) > 0 {
		t.Error("it does not end")
	}
	compareGolden(t, "first-configuration", transcript.String())
}

func TestGoldenChangedComponent(t *testing.T) {
	m, spec := newConfiguredModel(t)
	addRelease(&spec, "kubelet", "v2")
	m.Ledger = plan.Record(m.Facts, spec)
	first := plan.Make(m.Facts, spec)
	for _, step := range first.Steps {
		m.applyStep(step)
	}
	compareGolden(t, "changed-component", "# kubelet v2\n"+formatPlan(first)+"\n# then\n"+formatPlan(plan.Make(m.Facts, spec)))
}

func TestGoldenDriftedService(t *testing.T) {
	m, spec := newConfiguredModel(t)
	drifted := m.Services["containerd"]
	drifted.CommandLine += " --log-level debug"
	m.Services["containerd"] = drifted
	described := m.Services["kube-proxy"]
	described.Description = "mine"
	m.Services["kube-proxy"] = described
	compareGolden(t, "drifted-service", formatPlan(plan.Make(m.Facts, spec)))
}

func TestGoldenRemoval(t *testing.T) {
	m := newModel()
	m.Services["kube-proxy"] = host.Service{
		ServiceConfig: host.ServiceConfig{Name: "kube-proxy", CommandLine: "own.exe", StartType: host.StartAutomatic},
		State:         host.ServiceStopped,
	}
	convergeModel(t, m, smallSpec(), -1)
	m.Processes = []host.Process{
		{PID: 7, Name: "shim.exe", Path: `C:\k\releases\containerd-v1\shim.exe`},
		{PID: 8, Name: "wicd.exe", Path: `C:\k\wicd\0123456789ab\wicd.exe`},
	}
	first := plan.Remove(m.Facts)
	for _, step := range first.Steps {
		m.applyStep(step)
	}
	compareGolden(t, "removal", "# the services\n"+formatPlan(first)+"\n# then\n"+formatPlan(plan.Remove(m.Facts)))
}

func TestGoldenAdoption(t *testing.T) {
	for name, m := range map[string]*model{"wicd": withWICD(), "wmcb": withWMCB()} {
		spec := smallSpec()
		m.Ledger = plan.Record(m.Facts, spec)
		m.before = func(step plan.Step) { endServiceProcesses(m, step) }
		var transcript strings.Builder
		record := func(heading string) {
			p := plan.Make(m.Facts, spec)
			transcript.WriteString("# " + heading + "\n" + formatPlan(p) + "\n")
			for _, step := range p.Steps {
				m.applyStep(step)
			}
		}
		record("a host of an older operator")
		spec.Identity.Certificate = nodeCertificate()
		m.subnet = "10.132.1.0/24"
		spec.Network.PodSubnet = m.subnet
		m.stop("overlay")
		record("with what it needs")
		record("with the endpoint's address")
		record("when the new services run")
		compareGolden(t, "take-over-"+name, transcript.String())
	}
}
