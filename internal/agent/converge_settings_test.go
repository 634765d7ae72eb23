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
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/verb"
)

const registries = `C:\k\containerd\registries`

// mirrored adds the directory of a registry with its files to a spec.
func mirrored(spec nodespec.NodeSpec, registry, content string) nodespec.NodeSpec {
	folder := registries + `\` + registry
	spec.Directories = slices.Clone(spec.Directories)
	if last := spec.Directories[len(spec.Directories)-1].Path; !nodespec.Within(last, registries) {
		spec.Directories = append(spec.Directories, nodespec.Directory{Path: registries})
	}
	spec.Directories = append(spec.Directories, nodespec.Directory{Path: folder})
	spec.Files = append(slices.Clone(spec.Files),
		nodespec.File{Path: folder + `\ca.crt`, Content: "CA\n"}, nodespec.File{Path: folder + `\hosts.toml`, Secret: nodespec.Secret(content)})
	return spec
}

// Settings of the cluster are added and removed. No such change restarts anything or disrupts pods, and a
// second apply does nothing. R-107
func TestSettingsComeAndGo(t *testing.T) {
	t.Parallel()
	r := joined(t)
	runs := r.entries()
	for _, change := range []struct {
		what string
		spec nodespec.NodeSpec
		want []string
	}{
		{"another authority in place of the first", func() nodespec.NodeSpec {
			spec := r.full()
			spec.TrustedCertificates = []nodespec.TrustedCertificate{trusted("Other CA")}
			return spec
		}(), []string{
			"TrustCertificate CN=Other CA (" + trusted("Other CA").Fingerprint[:12] + ")", "DistrustCertificate " + trusted("Example CA").Fingerprint[:12],
		}},
		{"back again, with mirrors of two registries", mirrored(mirrored(r.full(), "a.example.com", "a"), "b.example.com_5000_", "b"), []string{
			"MakeDirectory " + registries, "MakeDirectory " + registries + `\a.example.com`, "MakeDirectory " + registries + `\b.example.com_5000_`,
			"WriteFile " + registries + `\a.example.com\ca.crt`, "WriteFile " + registries + `\a.example.com\hosts.toml`,
			"WriteFile " + registries + `\b.example.com_5000_\ca.crt`, "WriteFile " + registries + `\b.example.com_5000_\hosts.toml`,
			"TrustCertificate CN=Example CA (" + trusted("Example CA").Fingerprint[:12] + ")", "DistrustCertificate " + trusted("Other CA").Fingerprint[:12],
		}},
		{"the mirrors of one registry change, those of the other go with their folder", mirrored(r.full(), "a.example.com", "a2"), []string{
			"WriteFile " + registries + `\a.example.com\hosts.toml`, "RemovePath " + registries + `\b.example.com_5000_`,
		}},
		{"no mirrors", r.full(), []string{"RemovePath " + registries}},
		{"no route, no authority, no credentials", func() nodespec.NodeSpec {
			spec := r.full()
			spec.TrustedCertificates, spec.Routes = nil, nil
			spec.Files = slices.DeleteFunc(slices.Clone(spec.Files), func(f nodespec.File) bool { return f.Path == `C:\k\config.json` })
			return spec
		}(), []string{"DistrustCertificate " + trusted("Example CA").Fingerprint[:12], "DeleteRoute " + metadataRoute, `RemovePath C:\k\config.json`}},
	} {
		t.Run(change.what, func(t *testing.T) {
			if steps := r.applied(change.spec); !slices.Equal(steps, change.want) {
				t.Errorf("got  %q\nwant %q", steps, change.want)
			}
			if steps := r.applied(change.spec); len(steps) != 0 {
				t.Errorf("a second time: %q", steps)
			}
		})
	}
	if got := r.runs(runs); len(got) != 0 {
		t.Errorf("%v were restarted", got)
	}
	if line, _ := r.run("facts"); len(line.Result.Facts.Ledger.TrustedCertificates)+len(line.Result.Facts.Ledger.Routes) != 0 {
		t.Errorf("the ledger knows still %+v", line.Result.Facts.Ledger)
	}
	r.remove()
	compare(t, r.before, r.Snapshot())
}

// Pre-existing settings are preserved across all changes, and still exist after the host is removed. R-064
func TestWhatTheHostTrustedAndReachedBefore(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *fake.Options) {
		o.Name, o.Features = "node-a", map[string]host.FeatureState{nodespec.FeatureContainers: host.FeatureEnabled}
		o.Routes = []string{metadataRoute}
	})
	r.must(r.Boot(r.ctx))
	r.must(r.Host().Roots.Add(r.ctx, trusted("Example CA").DER))
	r.before = r.Snapshot()
	r.configure()
	if routes := r.AddedRoutes(); !slices.Equal(routes, []string{metadataRoute}) {
		t.Errorf("the route was lost with the network: %v", routes)
	}
	spec := r.full()
	spec.TrustedCertificates, spec.Routes = nil, nil
	if steps := r.applied(spec); len(steps) != 0 {
		t.Errorf("what was there before went: %q", steps)
	}
	r.applied(r.full())
	r.remove()
	compare(t, r.before, r.Snapshot())
}

//
func TestSettingsKilledAnywhere(t *testing.T) {
	t.Parallel()
	next := func(r *rig) nodespec.NodeSpec {
		spec := mirrored(r.full(), "a.example.com", "a")
		spec.TrustedCertificates, spec.Routes = []nodespec.TrustedCertificate{trusted("Other CA")}, []string{"169.254.169.253/32"}
		return spec
	}
	story := func(r *rig, k *killer) {
		k.watch(r)
		for _, spec := range []nodespec.NodeSpec{next(r), r.full()} {
			r.until(func() (verb.Line, []string) { return r.apply(spec) })
		}
	}
	reference, whole := joined(t), &killer{}
	want := withoutChance(reference.Snapshot())
	story(reference, whole)
	compare(t, want, withoutChance(reference.Snapshot()))
	for n := range boundaries(whole.seen) {
		t.Run(fmt.Sprintf("before change %d", n), func(t *testing.T) {
			t.Parallel()
			r, k := joined(t), &killer{n: n}
			story(r, k)
			t.Log("killed before " + k.at)
			compare(t, want, withoutChance(r.Snapshot()))
			r.remove()
			compare(t, r.before, r.Snapshot())
		})
	}
}

// The service restores settings that may be lost at any time.
func TestServiceKeepsTheSettings(t *testing.T) {
	t.Parallel()
	r := node(t)
	n := r.entries()
	r.LoseRoutes()
	r.must(r.Host().Roots.Remove(r.ctx, trusted("Example CA").Fingerprint))
	r.pass(timeouts.DriftCheck)
	if p := r.plan(r.full()); len(p.Steps) != 0 || len(r.runs(n)) != 0 {
		t.Errorf("left to do: %s; restarted: %v", names(p), r.runs(n))
	}
	t.Run("without a default route it waits for one, and all else is done", func(t *testing.T) {
		mend := r.LoseDefaultRoute()
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.pass(timeouts.DriftCheck)
		if !r.runsNow("kube-proxy") || len(r.events(report.EventNotRepaired)) != 0 {
			t.Errorf("kube-proxy runs: %t; events %+v", r.runsNow("kube-proxy"), r.Events())
		}
		mend()
		r.pass(timeouts.DriftCheck)
		if routes := r.AddedRoutes(); !slices.Equal(routes, []string{metadataRoute}) {
			t.Errorf("routes %v", routes)
		}
	})
}

// A node without such settings runs no queries for them.
func TestNobodyAsksForWhatNobodyNames(t *testing.T) {
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

func TestACertificateThatIsNotWhatTheSpecSays(t *testing.T) {
	t.Parallel()
	r := joined(t)
	spec := r.full()
	spec.TrustedCertificates = []nodespec.TrustedCertificate{{Fingerprint: trusted("Other CA").Fingerprint, Subject: "CN=Other CA", DER: trusted("Third CA").DER}}
	line, _ := r.apply(spec)
	r.fails(line, verb.ReasonStepFailed, "has the fingerprint")
	if slices.Contains(r.TrustedRoots(), trusted("Third CA").Fingerprint) {
		t.Error("it is trusted")
	}
}

// An authority that a policy provides too stays trusted. The operator's copy is removed from the store, the
// node reports the remaining trust, and nothing is retried.
func TestAnAuthorityThatAPolicyBringsToo(t *testing.T) {
	t.Parallel()
	ours := trusted("Example CA")
	without := func(r *rig) nodespec.NodeSpec {
		spec := r.full()
		spec.TrustedCertificates = nil
		return spec
	}
	t.Run("a node that does not need it any more has nothing left to do", func(t *testing.T) {
		t.Parallel()
		r := joined(t)
		withdraw := r.PolicyTrusts(ours.DER)
		var out bytes.Buffer
		_, err := r.Exec(r.ctx, fake.ExecRequest{Path: r.push(), Args: append([]string{"apply"}, r.send(without(r))...), Stdout: &out, Stderr: io.Discard})
		r.must(err)
		if !strings.Contains(out.String(), "group policy") {
			t.Errorf("the step says nothing of it: %s", out.String())
		}
		if p := r.plan(without(r)); len(p.Steps)+len(p.Needs) != 0 {
			t.Errorf("left to do: %s", names(p))
		}
		withdraw()
		if slices.Contains(r.TrustedRoots(), ours.Fingerprint) {
			t.Error("what was ours is still in the store")
		}
		r.applied(r.full())
		r.remove()
		compare(t, r.before, r.Snapshot())
	})
	t.Run("the service tries it once and tells", func(t *testing.T) {
		t.Parallel()
		r := node(t)
		r.PolicyTrusts(ours.DER)
		data, err := without(r).Encode()
		r.must(err)
		n := r.count(fake.KindRoot, "distrust")
		r.must(r.Drive().WriteFile(nodespec.SpecPath, data))
		for range 3 {
			r.pass(timeouts.DriftCheck)
		}
		if told := strings.Count(r.log(), "group policy"); told != 1 || r.count(fake.KindRoot, "distrust") != n+1 {
			t.Errorf("told %d times: %s", told, r.log())
		}
		if events := r.events(report.EventNotRepaired); len(events) != 0 {
			t.Errorf("events %+v", events)
		}
	})
	t.Run("a host that leaves is given back", func(t *testing.T) {
		t.Parallel()
		r := joined(t)
		withdraw := r.PolicyTrusts(ours.DER)
		r.remove()
		withdraw()
		compare(t, r.before, r.Snapshot())
	})
	t.Run("a host that an older operator had is taken over and given back", func(t *testing.T) {
		t.Parallel()
		policy := func(r *rig) { olderSettings(r); r.PolicyTrusts(trusted("Old CA").DER) }
		r := takenOver(t, policy)
		r.configure()
		if p := r.plan(r.full()); len(p.Steps)+len(p.Needs) != 0 {
			t.Errorf("left to do: %s", names(p))
		}
		r.remove()
		takenOver(t, policy).remove()
	})
	t.Run("a store that fails is a failure", func(t *testing.T) {
		t.Parallel()
		r := joined(t)
		r.OnOperation(func(o fake.Operation) error {
			if o.Interface == "Roots" && o.Method == "Remove" {
				return errors.New("the registry is damaged")
			}
			return nil
		})
		line, _ := r.apply(without(r))
		r.fails(line, verb.ReasonStepFailed, "the registry is damaged")
	})
}
