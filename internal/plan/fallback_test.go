package plan_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// keepRollbackTarget records a spec as the rollback target.
func (m *model) keepRollbackTarget(spec nodespec.NodeSpec) {
	m.RollbackTarget, m.RollbackReleases = spec.Digest(), nil
	for _, release := range spec.Releases {
		m.RollbackReleases = append(m.RollbackReleases, release.Directory)
	}
}

func (m *model) dropRollbackTarget() { m.RollbackTarget, m.RollbackReleases = "", nil }

// applyPartially applies a spec to the model, and ends after a number of steps.
func applyPartially(t fataler, m *model, spec nodespec.NodeSpec, steps int) {
	t.Helper()
	o := &operator{t: t, m: m, spec: spec, kill: steps}
	m.Ledger = plan.Record(m.Facts, spec)
	for range 20 {
		p := plan.Make(m.Facts, o.spec)
		if len(p.Steps) == 0 || o.kill < 0 {
			return
		}
		o.executeSteps(p.Steps)
	}
	t.Fatalf("no end: %v", namesOfSteps(o.steps))
}

// commitChange commits the change after the rollback target was deleted, with the agent killed once.
func commitChange(t fataler, m *model, spec nodespec.NodeSpec, kill int) {
	t.Helper()
	m.dropRollbackTarget()
	o := &operator{t: t, m: m, spec: spec, kill: kill}
	for range 10 {
		p := plan.Commit(m.Facts, spec)
		if len(p.Steps) == 0 {
			m.Ledger = plan.Prune(m.Facts, spec)
			return
		}
		for _, step := range p.Steps {
			if step.DisruptsPods {
				t.Fatalf("%s disturbs pods", step.Name)
			}
		}
		o.executeSteps(p.Steps)
	}
	t.Fatalf("no end: %v", namesOfSteps(o.steps))
}

// withNeedsMet returns a spec with all needs met.
func withNeedsMet(spec nodespec.NodeSpec) nodespec.NodeSpec {
	spec.Identity.Certificate, spec.Network.PodSubnet = nodeCertificate(), "10.132.1.0/24"
	return spec
}

// twoSpecs returns two successive specs of one host. Both have the same values for settings that the removal from a
// spec does not revert: see restoreStale.
func twoSpecs(t *rapid.T) (a, b nodespec.NodeSpec) {
	a, b = withNeedsMet(drawSpec(t, "first ")), withNeedsMet(drawSpec(t, "next "))
	b.HostName, b.Features = a.HostName, a.Features
	return a, b
}

func sameHost(t *rapid.T, got, want *model) {
	t.Helper()
	got, want = got.copyModel(), want.copyModel()
	for _, m := range []*model{got, want} {
		m.Ledger, m.Payload, m.Networks, m.Endpoints = plan.Ledger{}, nil, orNil(m.Networks), orNil(m.Endpoints)
		m.Antivirus.Exclusions, m.TrustedCertificates = orNil(m.Antivirus.Exclusions), orNil(m.TrustedCertificates)
		m.Routes = nil // routes also depend on restarts of the host
		slices.SortFunc(m.Antivirus.Exclusions, func(a, b host.Exclusion) int { return strings.Compare(a.Value, b.Value) })
	}
	if !reflect.DeepEqual(got.Facts, want.Facts) {
		t.Fatalf("got\n%+v\nwant\n%+v", got.Facts, want.Facts)
	}
}

// A rollback, started at any step of the upgrade and killed at any step, restores the state before the upgrade.
func TestRollback_RestoresPreviousSpec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawInitialModel(t)
		original := m.copyModel()
		a, b := twoSpecs(t)
		m.subnet = a.Network.PodSubnet
		convergeModel(t, m, a, -1)
		want := m.copyModel()
		m.keepRollbackTarget(a)
		applyPartially(t, m, b, rapid.IntRange(0, 40).Draw(t, "upgraded by"))
		for _, release := range a.Releases {
			for _, path := range []string{release.Manifest(), release.Path(release.Files[0])} {
				if _, exists := m.Files[path]; !exists {
					t.Fatalf("%s is gone, though it is kept", path)
				}
			}
		}
		applyPartially(t, m, a, rapid.IntRange(0, 30).Draw(t, "killed after"))
		steps := convergeModel(t, m, a, -1)
		for _, step := range steps {
			if strings.HasPrefix(step.Name, "InstallRelease") {
				t.Fatalf("%s: what is kept needs nothing from the operator", step.Name)
			}
		}
		m.dropRollbackTarget()
		if left := plan.Make(m.Facts, a); len(left.Steps) > 0 {
			t.Fatalf("left: %v", namesOfSteps(left.Steps))
		}
		sameHost(t, m, want)
		// The ledger can still restore the host.
		restoreModel(t, m, -1)
		operatorLeaves(m)
		operatorLeaves(original)
		m.Identity, m.Antivirus, original.Antivirus = plan.IdentityFacts{}, plan.AntivirusFacts{}, plan.AntivirusFacts{}
		sameHost(t, m, original)
	})
}

// A committed upgrade leaves only the objects that the new spec would have on a fresh host.
func TestCommit_UpgradedHostEqualsFreshHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawInitialModel(t)
		fresh := m.copyModel()
		fresh.disruptive = map[string]bool{}
		a, b := twoSpecs(t)
		m.subnet, fresh.subnet = a.Network.PodSubnet, a.Network.PodSubnet
		convergeModel(t, m, a, -1)
		m.keepRollbackTarget(a)
		convergeModel(t, m, b, rapid.IntRange(-1, 40).Draw(t, "killed after"))
		commitChange(t, m, b, rapid.IntRange(-1, 5).Draw(t, "settled and killed after"))
		if steps := plan.Make(m.Facts, b).Steps; len(steps) > 0 {
			t.Fatalf("left: %v", namesOfSteps(steps))
		}
		convergeModel(t, fresh, b, -1)
		sameHost(t, m, fresh)
		if !slices.Equal(ledgerPaths(m), ledgerPaths(fresh)) {
			t.Fatalf("the ledger knows %v, that of a fresh host %v", ledgerPaths(m), ledgerPaths(fresh))
		}
		commitChange(t, m, b, -1)
		sameHost(t, m, fresh)
	})
}

func ledgerPaths(m *model) []string {
	var paths []string
	for path := range m.Ledger.Paths {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// A release of the operator that changes nothing on a host, or only the agent, does not disrupt pods.
func TestMake_OperatorUpgradeDoesNotDisruptPods(t *testing.T) {
	m, spec := newConfiguredModel(t)
	t.Run("with the same digest nothing", func(t *testing.T) {
		next := spec
		next.Version = "12.0.1"
		if p := plan.Make(m.Facts, next); next.Digest() != spec.Digest() || len(p.Steps) > 0 {
			t.Errorf("digest the same: %t, steps %v", next.Digest() == spec.Digest(), namesOfSteps(p.Steps))
		}
	})
	t.Run("with another agent the agent's service", func(t *testing.T) {
		next := spec
		next.Services = slices.Clone(spec.Services)
		next.Services[len(next.Services)-1].CommandLine = `C:\k\wicd\ba9876543210\wicd.exe service`
		p := plan.Make(m.Facts, next)
		want := []string{"StopService " + nodespec.ServiceAgent, "ConfigureService " + nodespec.ServiceAgent,
			"StartService " + nodespec.ServiceAgent}
		if !slices.Equal(namesOfSteps(p.Steps), want) {
			t.Errorf("got %q", namesOfSteps(p.Steps))
		}
		for _, step := range p.Steps {
			if step.DisruptsPods || step.Reboots {
				t.Errorf("%s disturbs pods: %t, restarts the host: %t", step.Name, step.DisruptsPods, step.Reboots)
			}
		}
	})
}
