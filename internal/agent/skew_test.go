package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agent/records"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

const otherForms = "with another schema version and other forms"

// forms are how the files of a former release may differ from what the present one would write. Each changes the
// documents of NodeSpec and ledger. A ledger loses nothing: what it does not tell was never changed.
var forms = map[string]func(spec, ledger map[string]any){
	"as they are": func(_, _ map[string]any) {},
	"with fields that are gone": func(spec, ledger map[string]any) {
		spec["shares"] = []any{map[string]any{"name": "logs"}}
		spec["services"].([]any)[0].(map[string]any)["shell"] = "cmd"
		ledger["shares"] = map[string]any{"logs": nil}
	},
	"without fields that are new": func(spec, _ map[string]any) {
		for _, name := range []string{"logs", "exclusions", "routes"} {
			delete(spec, name)
		}
	},
	"with fields of other names": func(spec, _ map[string]any) {
		spec["trusted"] = spec["trustedCertificates"]
		delete(spec, "trustedCertificates")
	},
	"with another schema version": func(spec, _ map[string]any) { spec["schema"] = 0 },
	otherForms: func(spec, _ map[string]any) {
		spec["schema"], spec["logs"], spec["features"] = 0, "all", map[string]any{"Containers": true}
	},
}

// altered returns a document after a change. Its fields are in another order than before.
func altered(t *testing.T, data []byte, change func(map[string]any)) []byte {
	t.Helper()
	var document map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&document); err != nil {
		t.Fatal(err)
	}
	change(document)
	data, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// formerHost is a host that an agent of a former release has left.
type formerHost struct {
	*rig
	platform string
	spec     []byte // its file
	digest   string // as that agent has computed it
}

// leftBy is a host with the files of a release, in another form. Its first agent understands them.
func leftBy(t *testing.T, release, platform string, form func(spec, ledger map[string]any)) *formerHost {
	t.Helper()
	left := released(t, release, platform)
	origin, err := nodespec.DecodeHeld(left["spec.json"])
	if err != nil {
		t.Fatal(err)
	}
	origin.Schema, origin.Network.PodSubnet = nodespec.SchemaVersion, ""
	r := newRig(t).start()
	r.become(origin.WithCertificate("", "").WithCertificate(cloud.Name, ""))

	h := &formerHost{rig: r, platform: platform}
	var ledger map[string]any
	r.must(json.Unmarshal(left["ledger.json"], &ledger))
	h.spec = altered(t, left["spec.json"], func(spec map[string]any) { form(spec, ledger) })
	var known records.Applied
	r.must(json.Unmarshal(left["applied.json"], &known))
	h.digest = known.Digest
	applied := altered(t, left["applied.json"], func(fields map[string]any) { fields["file"] = sum(h.spec) })
	changed, err := json.Marshal(ledger)
	r.must(err)
	for path, data := range map[string][]byte{
		nodespec.SpecPath: h.spec, nodespec.LedgerPath: changed, nodespec.AppliedPath: applied,
	} {
		r.must(r.Drive().WriteFile(path, data))
	}
	for _, each := range origin.Releases { // of which the times belong to other files
		manifest := altered(t, left["manifest-"+each.Component+".json"], func(fields map[string]any) { fields["source"] = "module" })
		r.must(r.Drive().WriteFile(each.Manifest(), manifest))
	}
	own := func(of *host.Host) {
		of.Files = translated{of.Files, [][2][]byte{{h.spec, left["spec.json"]}, {applied, left["applied.json"]}}}
	}
	r.former.Store(&own)
	r.program = program("wicd.exe", "v2")
	return h
}

// translated gives an agent the files in the form that it knows, and keeps them in another.
type translated struct {
	host.Files
	pairs [][2][]byte // on the host, and for the agent
}

func (f translated) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	file, err := f.Files.Open(ctx, path)
	if err != nil || !strings.HasSuffix(path, ".json") {
		return file, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(file)
	for _, pair := range f.pairs {
		if bytes.Equal(data, pair[0]) {
			data = pair[1]
			break
		}
	}
	return io.NopCloser(bytes.NewReader(data)), err
}

func (f translated) Write(ctx context.Context, path string, from io.Reader, options host.WriteOptions) error {
	if !strings.HasSuffix(path, ".json") {
		return f.Files.Write(ctx, path, from, options)
	}
	data, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	for _, pair := range f.pairs {
		if bytes.Equal(data, pair[1]) {
			data = pair[0]
			break
		}
	}
	return f.Files.Write(ctx, path, bytes.NewReader(data), options)
}

// upgradeTo upgrades the host to what a later release wants, and has it keep what it was.
func (h *formerHost) upgradeTo(spec nodespec.NodeSpec) *verb.Result {
	h.Helper()
	args := append([]string{"apply", "--fallback", "sha256:" + h.digest}, h.send(spec)...)
	result, _ := h.result(h.run(args...))
	return result
}

func (h *formerHost) proven(line verb.Line, steps []string) {
	h.Helper()
	result, _ := h.result(line, steps)
	if len(result.Checks) == 0 {
		h.Error("nothing was checked")
	}
	for _, check := range result.Checks {
		if !check.Passed && !check.Advisory {
			h.Errorf("%s: %s", check.Name, check.Message)
		}
	}
}

// An agent meets what the agent of a former release has left, whatever its own fields are. R-086
func TestFilesOfAFormerRelease(t *testing.T) {
	t.Parallel()
	for _, release := range releases(t) {
		for platform := range platforms {
			for form, change := range forms {
				t.Run(release+" on "+platform+", "+form, func(t *testing.T) {
					t.Parallel()
					h := leftBy(t, release, platform, change)
					t.Run("facts name what was applied, by which agent", h.isKnown)
					t.Run("the node is proven to work, if all is understood", func(*testing.T) {
						if line, steps := h.run("verify"); form == otherForms {
							h.fails(line, verb.ReasonSpecUnknown, "features")
						} else {
							h.proven(line, steps)
						}
					})
					if platform == "azure" {
						t.Run("the service's certificate is renewed", h.isRenewed)
					}
					t.Run("an upgrade keeps it, byte for byte", h.isKept)
					t.Run("a rollback by its own agent brings it back", h.isRolledBack)
					t.Run("a removal restores the host", h.isRemoved)
				})
			}
		}
	}
}

func (h *formerHost) isKnown(t *testing.T) {
	facts := h.facts(t)
	if facts.Applied != h.digest || facts.AppliedAgent != sum(agentProgram) || facts.NoFallback != "" {
		t.Errorf("applied %s by %s, %s", facts.Applied, facts.AppliedAgent, facts.NoFallback)
	}
}

func (h *formerHost) isRenewed(t *testing.T) {
	result, _ := h.result(h.run("renew", "--identity", cloud.Name))
	certificate := h.sign(result.Facts.Identities[cloud.Name].Request)
	result, steps := h.result(h.run("renew", "--identity", cloud.Name, "--identity-certificate", cloud.Name+":"+word(certificate)))
	if len(result.Plan.Needs) > 0 || !slices.Equal(steps, []string{"InstallCertificate " + cloud.CommonName}) {
		t.Errorf("needs %v, steps %v", result.Plan.Needs, steps)
	}
}

func (h *formerHost) isKept(t *testing.T) {
	own := h.program
	result := h.upgradeTo(platforms[h.platform](h.next()))
	h.program = own
	if result.NoFallback != "" || result.Facts.Fallback != h.digest || result.Facts.FallbackAgent != sum(agentProgram) {
		t.Fatalf("fallback %q of the agent %q: %s", result.Facts.Fallback, result.Facts.FallbackAgent, result.NoFallback)
	}
	if kept, err := h.Drive().ReadFile(nodespec.FallbackPath); err != nil || !bytes.Equal(kept, h.spec) {
		t.Errorf("it was changed (%v)", err)
	}
}

func (h *formerHost) isRolledBack(t *testing.T) {
	agent := nodespec.AgentPath(h.facts(t).FallbackAgent)
	result, steps := h.result(h.runFrom(agent, "rollback"))
	if slices.ContainsFunc(steps, func(step string) bool { return strings.HasPrefix(step, "InstallRelease") }) {
		t.Errorf("steps %v", steps)
	}
	if result.Facts.Applied != h.digest || result.Facts.Fallback != "" || len(result.Plan.Needs) > 0 {
		t.Errorf("applied %s, fallback %q, needs %v", result.Facts.Applied, result.Facts.Fallback, result.Plan.Needs)
	}
	if data, err := h.Drive().ReadFile(nodespec.SpecPath); err != nil || !bytes.Equal(data, h.spec) {
		t.Errorf("the NodeSpec was changed (%v)", err)
	}
	if data, _ := h.Drive().ReadFile(`C:\k\kubelet.conf`); string(data) != "kind: KubeletConfiguration\n" || h.there(`C:\k\registration`) {
		t.Errorf("the files are not what they were: %s", data)
	}
	service, _ := h.Service(nodespec.ServiceAgent)
	if !strings.HasPrefix(service.CommandLine, agent) {
		t.Errorf("the service runs %s", service.CommandLine)
	}
	h.proven(h.runFrom(nodespec.AgentPath(h.facts(t).AppliedAgent), "verify"))
	if !h.there(nodespec.AgentPath(sum(h.program))) {
		t.Error("the later agent must be sent again")
	}
}

func (h *formerHost) isRemoved(*testing.T) {
	h.remove()
	compare(h.T, h.rig.before, h.Snapshot())
}

// An agent that is older than the ledger keeps what it does not know. R-059
func TestLedgerOfALaterRelease(t *testing.T) {
	t.Parallel()
	r := joined(t)
	tasks := map[string]any{"backup": map[string]any{"existed": true, "definition": "<Task/>"}}
	read := func() map[string]any {
		t.Helper()
		data, err := r.Drive().ReadFile(nodespec.LedgerPath)
		r.must(err)
		var ledger map[string]any
		r.must(json.Unmarshal(data, &ledger))
		return ledger
	}
	data, err := r.Drive().ReadFile(nodespec.LedgerPath)
	r.must(err)
	r.must(r.Drive().WriteFile(nodespec.LedgerPath, altered(t, data, func(ledger map[string]any) {
		ledger["scheduledTasks"] = tasks
		ledger["paths"].(map[string]any)[`C:\k\kubelet.conf`].(map[string]any)["owner"] = "backup"
		ledger["exclusions"].([]any)[0].(map[string]any)["since"] = "2027"
	})))
	holds := func(t *testing.T) {
		t.Helper()
		ledger := read()
		kept, _ := json.Marshal(ledger["scheduledTasks"])
		want, _ := json.Marshal(tasks)
		if !bytes.Equal(kept, want) {
			t.Errorf("the entries are %s", kept)
		}
		if path := ledger["paths"].(map[string]any)[`C:\k\kubelet.conf`].(map[string]any); path["owner"] != "backup" {
			t.Errorf("the path is %v", path)
		}
		if first := ledger["exclusions"].([]any)[0].(map[string]any); first["since"] != "2027" {
			t.Errorf("the exclusion is %v", first)
		}
	}
	t.Run("through an upgrade and a rollback", func(t *testing.T) {
		former := r.full()
		own := r.program
		r.result(r.upgrade(r.next(), former))
		holds(t)
		r.program, r.versions = own, nil
		r.result(r.run("rollback"))
		holds(t)
		if _, there := read()["environment"].(map[string]any)["NO_PROXY"]; there {
			t.Error("an entry that was restored is still there")
		}
	})
	t.Run("a removal says what it cannot restore", func(t *testing.T) {
		boot := r.BootID()
		line, _ := r.run("remove")
		if line.Type == verb.TypeRebooting {
			r.awaitBoot(boot)
			line, _ = r.run("remove")
		}
		want := []string{"exclusions[0].since", `paths.C:\k\kubelet.conf.owner`, "scheduledTasks"}
		if line.Result == nil || !line.Result.Removed || !slices.Equal(line.Result.NotRestored, want) {
			t.Errorf("%s %v %+v", line.Type, line.Failure, line.Result)
		}
		if !slices.Contains(slices.Collect(maps.Keys(read())), "scheduledTasks") {
			t.Error("the ledger has lost it")
		}
	})
}

// An agent does with a NodeSpec that it does not know whole only what is safe, and says why it refuses the rest.
func TestSpecOfAnotherRelease(t *testing.T) {
	t.Parallel()
	change := func(name string, value any) func(map[string]any) {
		return func(spec map[string]any) { spec["schema"], spec[name] = 7, value }
	}
	for name, c := range map[string]struct {
		change func(map[string]any)
		verb   []string
		says   string // empty when the verb ends well
	}{
		"a later one is no matter for a renewal":    {change("more", 1), []string{"renew", "--identity", cloud.Name}, ""},
		"a later one proves nothing":                {change("more", 1), []string{"verify"}, "a later agent must check the node"},
		"one whose identities have another form":    {change("identities", "all"), []string{"renew", "--identity", cloud.Name}, "does not find the identity"},
		"one whose identities have another name":    {change("identities", nil), []string{"renew", "--identity", cloud.Name}, "does not find the identity"},
		"an earlier one without checks":             {func(spec map[string]any) { spec["schema"] = 0; delete(spec, "checks") }, []string{"verify"}, "no checks"},
		"an earlier one whose checks are different": {func(spec map[string]any) { spec["schema"], spec["checks"] = 0, "all" }, []string{"verify"}, "checks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := leftBy(t, "12.0", "azure", func(spec, _ map[string]any) { c.change(spec) })
			line, _ := h.run(c.verb...)
			if c.says != "" {
				h.fails(line, verb.ReasonSpecUnknown, c.says)
			} else if line.Type != verb.TypeResult {
				t.Errorf("%s %v", line.Type, line.Failure)
			}
		})
	}
}

// What cannot be kept for a rollback is said before the host is changed, and by the verb that does not keep it.
func TestWhatCannotBeKeptAsAFallback(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(h *formerHost)
		says  string
	}{
		"the NodeSpec was changed by somebody else": {func(h *formerHost) {
			h.must(h.Drive().WriteFile(nodespec.SpecPath, []byte(`{"schema":0}`)))
		}, "is not the NodeSpec that was applied last to its end"},
		"the agent that understands it is gone": {func(h *formerHost) {
			h.must(h.Host().Services.Stop(h.ctx, nodespec.ServiceAgent))
			h.must(h.Drive().RemoveAll(folderOf(agentProgram)))
		}, "the agent that applied its NodeSpec is not on the host any more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := leftBy(t, "12.0", "none", forms["with another schema version"])
			c.spoil(h)
			if facts := h.facts(t); !strings.Contains(facts.NoFallback, c.says) {
				t.Errorf("facts say %q", facts.NoFallback)
			}
			result := h.upgradeTo(h.next())
			if !strings.Contains(result.NoFallback, c.says) || result.Facts.Fallback != "" {
				t.Errorf("fallback %q, %q", result.Facts.Fallback, result.NoFallback)
			}
		})
	}
}

// An agent does not roll a host back to what it may misunderstand.
func TestRollbackIsLeftToTheFormerAgent(t *testing.T) {
	t.Parallel()
	h := leftBy(t, "12.0", "none", forms["with another schema version"])
	h.upgradeTo(h.next())
	before := withoutChance(h.Snapshot())
	line, _ := h.run("rollback")
	h.fails(line, verb.ReasonSpecUnknown, nodespec.AgentPath(sum(agentProgram)))
	compare(t, before, withoutChance(h.Snapshot()))
}

func (h *formerHost) facts(t *testing.T) plan.Facts {
	t.Helper()
	result, _ := h.result(h.run("facts"))
	return *result.Facts
}
