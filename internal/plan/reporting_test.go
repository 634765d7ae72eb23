package plan_test

import (
	"slices"
	"testing"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// silent is a spec of a release whose agent told the cluster nothing.
func silent(spec nodespec.NodeSpec) nodespec.NodeSpec {
	directory := spec.Identities[0].Directory
	spec.Reporting, spec.Identities = nil, nil
	spec.Directories = slices.DeleteFunc(slices.Clone(spec.Directories), func(d nodespec.Directory) bool {
		return nodespec.Within(directory, d.Path) && !nodespec.SamePath(d.Path, nodespec.Root)
	})
	return spec
}

func TestAnAgentThatBeginsToReport(t *testing.T) {
	next := made(t, clusterInputs())
	agent := next.Identities[len(next.Identities)-1]
	need := nodespec.NeedCertificateOf(agent.Name)
	if next.Reporting.Identity != agent.Name {
		t.Fatalf("the report is written as %s, the identity is %s", next.Reporting.Identity, agent.Name)
	}
	waiting := next.WithCertificate(agent.Name, "")
	folders := []string{`MakeDirectory C:\k\agent`, "MakeDirectory " + agent.Directory}
	m := settled(t, silent(next))
	m.Ledger = plan.Record(m.Facts, waiting)

	t.Run("gets a key, and nothing on the node restarts", func(t *testing.T) {
		p := plan.Make(m.Facts, waiting)
		check(t, p, append(slices.Clone(folders), "RequestCertificate "+agent.CommonName), nil, false)
		if !slices.Equal(p.Needs, []nodespec.Need{need}) {
			t.Errorf("needs %v", p.Needs)
		}
		for _, step := range p.Steps {
			m.do(step)
		}
	})
	t.Run("leaves nothing else undone while it waits for its certificate", func(t *testing.T) {
		if p := plan.Make(m.Facts, waiting); len(p.Steps) != 0 || !slices.Equal(p.Needs, []nodespec.Need{need}) {
			t.Errorf("%s needs %v", text(p), p.Needs)
		}
	})
	t.Run("gets its certificate, and nothing on the node restarts", func(t *testing.T) {
		p := plan.Make(m.Facts, next)
		check(t, p, []string{"InstallCertificate " + agent.CommonName}, nil, false)
		if len(p.Needs) != 0 {
			t.Errorf("needs %v", p.Needs)
		}
	})
}

func TestAFirstConfigurationWaitsForNoReport(t *testing.T) {
	spec := made(t, clusterInputs())
	need := nodespec.NeedCertificateOf(spec.Reporting.Identity)
	m := fresh()
	m.overlay, m.network, m.subnet = nodespec.ServiceHybridOverlay, spec.Network.HNSNetwork, spec.Network.PodSubnet
	spec.Identities[len(spec.Identities)-1].Certificate = "" // nobody signs it
	m.Ledger = plan.Record(m.Facts, spec)
	for range 20 {
		p := plan.Make(m.Facts, spec)
		if len(p.Steps) > 0 {
			for _, step := range p.Steps {
				m.do(step)
			}
			continue
		}
		if !slices.Equal(p.Needs, []nodespec.Need{need}) || slices.ContainsFunc(p.Needs, spec.HoldsUp) {
			t.Errorf("needs %v", p.Needs)
		}
		for _, service := range spec.Services {
			if _, runs := m.Services[service.Name]; !runs || m.Services[service.Name].RunningCommandLine == "" {
				t.Errorf("%s does not run", service.Name)
			}
		}
		return
	}
	t.Fatal("no end")
}
