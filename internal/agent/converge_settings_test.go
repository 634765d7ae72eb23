package agent_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agent/report"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

const registries = `C:\k\containerd\registries`

// withMirror adds the directory of a registry with its files to a spec.
func withMirror(spec nodespec.NodeSpec, registry, content string) nodespec.NodeSpec {
	dir := registries + `\` + registry
	spec.Directories = slices.Clone(spec.Directories)
	if last := spec.Directories[len(spec.Directories)-1].Path; !nodespec.IsWithin(last, registries) {
		spec.Directories = append(spec.Directories, nodespec.Directory{Path: registries})
	}
	spec.Directories = append(spec.Directories, nodespec.Directory{Path: dir})
	spec.Files = append(slices.Clone(spec.Files),
		nodespec.File{Path: dir + `\ca.crt`, Content: "CA\n"}, nodespec.File{Path: dir + `\hosts.toml`, Secret: nodespec.Secret(content)})
	return spec
}

// Settings of the cluster are added and removed. No such change restarts anything or disrupts pods, and a
// second apply does nothing. R-107
func TestSettings_ChangeWithoutRestart(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	runs := r.journalLength()
	for _, change := range []struct {
		what string
		spec nodespec.NodeSpec
		want []string
	}{
		{"another authority in place of the first", func() nodespec.NodeSpec {
			spec := r.fullSpec()
			spec.TrustedCertificates = []nodespec.TrustedCertificate{newAuthority("Other CA")}
			return spec
		}(), []string{
			"TrustCertificate CN=Other CA (" + newAuthority("Other CA").Fingerprint[:12] + ")", "DistrustCertificate " + newAuthority("Example CA").Fingerprint[:12],
		}},
		{"back again, with mirrors of two registries", withMirror(withMirror(r.fullSpec(), "a.example.com", "a"), "b.example.com_5000_", "b"), []string{
			"MakeDirectory " + registries, "MakeDirectory " + registries + `\a.example.com`, "MakeDirectory " + registries + `\b.example.com_5000_`,
			"WriteFile " + registries + `\a.example.com\ca.crt`, "WriteFile " + registries + `\a.example.com\hosts.toml`,
			"WriteFile " + registries + `\b.example.com_5000_\ca.crt`, "WriteFile " + registries + `\b.example.com_5000_\hosts.toml`,
			"TrustCertificate CN=Example CA (" + newAuthority("Example CA").Fingerprint[:12] + ")", "DistrustCertificate " + newAuthority("Other CA").Fingerprint[:12],
		}},
		{"the mirrors of one registry change, those of the other go with their folder", withMirror(r.fullSpec(), "a.example.com", "a2"), []string{
			"WriteFile " + registries + `\a.example.com\hosts.toml`, "RemovePath " + registries + `\b.example.com_5000_`,
		}},
		{"no mirrors", r.fullSpec(), []string{"RemovePath " + registries}},
		{"no route, no authority, no credentials", func() nodespec.NodeSpec {
			spec := r.fullSpec()
			spec.TrustedCertificates, spec.Routes = nil, nil
			spec.Files = slices.DeleteFunc(slices.Clone(spec.Files), func(f nodespec.File) bool { return f.Path == `C:\k\config.json` })
			return spec
		}(), []string{"DistrustCertificate " + newAuthority("Example CA").Fingerprint[:12], "DeleteRoute " + metadataRoute, `RemovePath C:\k\config.json`}},
	} {
		t.Run(change.what, func(t *testing.T) {
			if steps := r.mustApply(change.spec); !slices.Equal(steps, change.want) {
				t.Errorf("got  %q\nwant %q", steps, change.want)
			}
			if steps := r.mustApply(change.spec); len(steps) != 0 {
				t.Errorf("a second time: %q", steps)
			}
		})
	}
	if got := r.startedServices(runs); len(got) != 0 {
		t.Errorf("%v were restarted", got)
	}
	if line, _ := r.run("facts"); len(line.Result.Facts.Ledger.TrustedCertificates)+len(line.Result.Facts.Ledger.Routes) != 0 {
		t.Errorf("the ledger knows still %+v", line.Result.Facts.Ledger)
	}
	r.removeNode()
	compareSnapshots(t, r.before, r.Snapshot())
}

// Pre-existing settings are preserved across all changes, and still exist after the host is removed. R-064
func TestSettings_PreexistingSettingsPreserved(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *fake.Options) {
		o.Name, o.Features = "node-a", map[string]host.FeatureState{nodespec.FeatureContainers: host.FeatureEnabled}
		o.Routes = []string{metadataRoute}
	})
	r.must(r.Boot(r.ctx))
	r.must(r.Host().Roots.Add(r.ctx, newAuthority("Example CA").DER))
	r.before = r.Snapshot()
	r.configureHost()
	if routes := r.AddedRoutes(); !slices.Equal(routes, []string{metadataRoute}) {
		t.Errorf("the route was lost with the network: %v", routes)
	}
	spec := r.fullSpec()
	spec.TrustedCertificates, spec.Routes = nil, nil
	if steps := r.mustApply(spec); len(steps) != 0 {
		t.Errorf("what was there before went: %q", steps)
	}
	r.mustApply(r.fullSpec())
	r.removeNode()
	compareSnapshots(t, r.before, r.Snapshot())
}

//
func TestSettings_ContinueAfterKill(t *testing.T) {
	t.Parallel()
	next := func(r *rig) nodespec.NodeSpec {
		spec := withMirror(r.fullSpec(), "a.example.com", "a")
		spec.TrustedCertificates, spec.Routes = []nodespec.TrustedCertificate{newAuthority("Other CA")}, []string{"169.254.169.253/32"}
		return spec
	}
	run := func(r *rig, k *killer) {
		k.registerHook(r)
		for _, spec := range []nodespec.NodeSpec{next(r), r.fullSpec()} {
			r.retryKilled(func() (agentapi.Line, []string) { return r.apply(spec) })
		}
	}
	reference, counting := newConfiguredRig(t), &killer{}
	want := withoutChance(reference.Snapshot())
	run(reference, counting)
	compareSnapshots(t, want, withoutChance(reference.Snapshot()))
	for n := range killPoints(counting.seen) {
		t.Run(fmt.Sprintf("before change %d", n), func(t *testing.T) {
			t.Parallel()
			r, k := newConfiguredRig(t), &killer{n: n}
			run(r, k)
			t.Log("killed before " + k.at)
			compareSnapshots(t, want, withoutChance(r.Snapshot()))
			r.removeNode()
			compareSnapshots(t, r.before, r.Snapshot())
		})
	}
}

// The service restores settings that may be lost at any time.
func TestService_RestoresLostSettings(t *testing.T) {
	t.Parallel()
	r := newNodeRig(t)
	n := r.journalLength()
	r.LoseRoutes()
	r.must(r.Host().Roots.Remove(r.ctx, newAuthority("Example CA").Fingerprint))
	r.advanceTime(timeouts.DriftCheckInterval)
	if p := r.runPlan(r.fullSpec()); len(p.Steps) != 0 || len(r.startedServices(n)) != 0 {
		t.Errorf("left to do: %s; restarted: %v", formatSteps(p), r.startedServices(n))
	}
	t.Run("without a default route it waits for one, and all else is done", func(t *testing.T) {
		restore := r.LoseDefaultRoute()
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.advanceTime(timeouts.DriftCheckInterval)
		if !r.isRunning("kube-proxy") || len(r.eventsByID(report.EventNotRepaired)) != 0 {
			t.Errorf("kube-proxy runs: %t; events %+v", r.isRunning("kube-proxy"), r.Events())
		}
		restore()
		r.advanceTime(timeouts.DriftCheckInterval)
		if routes := r.AddedRoutes(); !slices.Equal(routes, []string{metadataRoute}) {
			t.Errorf("routes %v", routes)
		}
	})
}

// A node without such settings runs no queries for them.
func TestSettings_NotQueriedIfUnset(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	r.OnOperation(func(o fake.Operation) error {
		if o.Interface == "Roots" || o.Interface == "Routes" {
			t.Errorf("asked: %s", o)
		}
		return nil
	})
	spec := newSpec(nil)
	spec.TrustedCertificates, spec.Routes, spec.HostName = nil, nil, ""
	r.apply(spec)
}

func TestSettings_FingerprintMismatchRejected(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	spec := r.fullSpec()
	spec.TrustedCertificates = []nodespec.TrustedCertificate{{Fingerprint: newAuthority("Other CA").Fingerprint, Subject: "CN=Other CA", DER: newAuthority("Third CA").DER}}
	line, _ := r.apply(spec)
	r.checkFailure(line, agentapi.ReasonStepFailed, "has the fingerprint")
	if slices.Contains(r.TrustedRoots(), newAuthority("Third CA").Fingerprint) {
		t.Error("it is trusted")
	}
}

// An authority that a policy provides too stays trusted. The operator's copy is removed from the store, the
// node reports the remaining trust, and nothing is retried.
func TestSettings_AuthorityOfPolicyStaysTrusted(t *testing.T) {
	t.Parallel()
	authority := newAuthority("Example CA")
	without := func(r *rig) nodespec.NodeSpec {
		spec := r.fullSpec()
		spec.TrustedCertificates = nil
		return spec
	}
	t.Run("a node that does not need it any more has nothing left to do", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		withdraw := r.TrustByPolicy(authority.DER)
		var out bytes.Buffer
		_, err := r.Exec(r.ctx, fake.ExecRequest{Path: r.uploadAgent(), Args: append([]string{"apply"}, r.sendSpec(without(r))...), Stdout: &out, Stderr: io.Discard})
		r.must(err)
		if !strings.Contains(out.String(), "group policy") {
			t.Errorf("the step says nothing of it: %s", out.String())
		}
		if p := r.runPlan(without(r)); len(p.Steps)+len(p.Needs) != 0 {
			t.Errorf("left to do: %s", formatSteps(p))
		}
		withdraw()
		if slices.Contains(r.TrustedRoots(), authority.Fingerprint) {
			t.Error("what was ours is still in the store")
		}
		r.mustApply(r.fullSpec())
		r.removeNode()
		compareSnapshots(t, r.before, r.Snapshot())
	})
	t.Run("the service tries it once and tells", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		r.TrustByPolicy(authority.DER)
		data, err := without(r).Encode()
		r.must(err)
		n := r.countEntries(fake.KindRoot, "distrust")
		r.must(r.Drive().WriteFile(nodespec.SpecPath, data))
		for range 3 {
			r.advanceTime(timeouts.DriftCheckInterval)
		}
		if count := strings.Count(r.readLog(), "group policy"); count != 1 || r.countEntries(fake.KindRoot, "distrust") != n+1 {
			t.Errorf("told %d times: %s", count, r.readLog())
		}
		if events := r.eventsByID(report.EventNotRepaired); len(events) != 0 {
			t.Errorf("events %+v", events)
		}
	})
	t.Run("a host that leaves is given back", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		withdraw := r.TrustByPolicy(authority.DER)
		r.removeNode()
		withdraw()
		compareSnapshots(t, r.before, r.Snapshot())
	})
	t.Run("a host that an older operator had is taken over and given back", func(t *testing.T) {
		t.Parallel()
		policy := func(r *rig) { addLegacySettings(r); r.TrustByPolicy(newAuthority("Old CA").DER) }
		r := newLegacyHost(t, policy)
		r.configureHost()
		if p := r.runPlan(r.fullSpec()); len(p.Steps)+len(p.Needs) != 0 {
			t.Errorf("left to do: %s", formatSteps(p))
		}
		r.removeNode()
		newLegacyHost(t, policy).removeNode()
	})
	t.Run("a store that fails is a failure", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		r.OnOperation(func(o fake.Operation) error {
			if o.Interface == "Roots" && o.Method == "Remove" {
				return errors.New("the registry is damaged")
			}
			return nil
		})
		line, _ := r.apply(without(r))
		r.checkFailure(line, agentapi.ReasonStepFailed, "the registry is damaged")
	})
}
