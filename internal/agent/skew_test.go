package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

const changedSchemaForm = "with another schema version and other forms"

// forms are possible differences between the files of a former release and the files of this release. Each form
// changes the documents of NodeSpec and ledger. No form removes ledger entries: an object without an entry was
// never changed.
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
	changedSchemaForm: func(spec, _ map[string]any) {
		spec["schema"], spec["logs"], spec["features"] = 0, "all", map[string]any{"Containers": true}
	},
}

// alterDocument returns a changed document, with its fields in another order.
func alterDocument(t *testing.T, data []byte, change func(map[string]any)) []byte {
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

// formerHost is a host configured by an agent of a former release.
type formerHost struct {
	*rig
	platform string
	spec     []byte // the NodeSpec file
	digest   string // as computed by that agent
}

// leftBy returns a host with the files of a release, in another form. Its first agent understands the files.
func leftBy(t *testing.T, release, platform string, form func(spec, ledger map[string]any)) *formerHost {
	t.Helper()
	left := readReleaseFiles(t, release, platform)
	origin, err := nodespec.DecodeStoredSpec(left["spec.json"])
	if err != nil {
		t.Fatal(err)
	}
	origin.Schema, origin.Network.PodSubnet = nodespec.SchemaVersion, ""
	r := newRig(t).start()
	r.configureWith(origin.WithCertificate("", "").WithCertificate(cloud.Name, ""))

	h := &formerHost{rig: r, platform: platform}
	var ledger map[string]any
	r.must(json.Unmarshal(left["ledger.json"], &ledger))
	h.spec = alterDocument(t, left["spec.json"], func(spec map[string]any) { form(spec, ledger) })
	var known state.Applied
	r.must(json.Unmarshal(left["applied.json"], &known))
	h.digest = known.Digest
	applied := alterDocument(t, left["applied.json"], func(fields map[string]any) { fields["file"] = hexDigest(h.spec) })
	changed, err := json.Marshal(ledger)
	r.must(err)
	for path, data := range map[string][]byte{
		nodespec.SpecPath: h.spec, nodespec.LedgerPath: changed, nodespec.AppliedPath: applied,
	} {
		r.must(r.Drive().WriteFile(path, data))
	}
	for _, each := range origin.Releases { // the recorded times belong to other files
		manifest := alterDocument(t, left["manifest-"+each.Component+".json"], func(fields map[string]any) { fields["source"] = "module" })
		r.must(r.Drive().WriteFile(each.Manifest(), manifest))
	}
	current := func(of *host.Host) {
		of.Files = translated{of.Files, [][2][]byte{{h.spec, left["spec.json"]}, {applied, left["applied.json"]}}}
	}
	r.former.Store(&current)
	r.program = programContent("wicd.exe", "v2")
	return h
}

// translated converts files on the host to the form that an agent knows, and back.
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

// upgradeTo upgrades the host to the spec of a later release, and keeps the former spec as rollback target.
func (h *formerHost) upgradeTo(spec nodespec.NodeSpec) *agentapi.Result {
	h.Helper()
	args := append([]string{"apply", "--rollback-to", "sha256:" + h.digest}, h.sendSpec(spec)...)
	result, _ := h.mustResult(h.run(args...))
	return result
}

func (h *formerHost) checkVerified(line agentapi.Line, steps []string) {
	h.Helper()
	result, _ := h.mustResult(line, steps)
	if len(result.Checks) == 0 {
		h.Error("nothing was checked")
	}
	for _, check := range result.Checks {
		if !check.Passed && !check.Advisory {
			h.Errorf("%s: %s", check.Name, check.Message)
		}
	}
}

// An agent handles the files of an agent of a former release, regardless of its own fields.
func TestVersionSkew_HandlesFilesOfFormerRelease(t *testing.T) {
	t.Parallel()
	for _, release := range listReleases(t) {
		for platform := range platforms {
			for form, change := range forms {
				t.Run(release+" on "+platform+", "+form, func(t *testing.T) {
					t.Parallel()
					h := leftBy(t, release, platform, change)
					t.Run("facts name what was applied, by which agent", h.isKnown)
					t.Run("the node is proven to work, if all is understood", func(*testing.T) {
						if line, steps := h.run("verify"); form == changedSchemaForm {
							h.checkFailure(line, agentapi.ReasonSpecNotFound, "features")
						} else {
							h.checkVerified(line, steps)
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
	facts := h.readFacts(t)
	if facts.Applied != h.digest || facts.AppliedAgent != hexDigest(agentProgram) || facts.NoRollbackReason != "" {
		t.Errorf("applied %s by %s, %s", facts.Applied, facts.AppliedAgent, facts.NoRollbackReason)
	}
}

func (h *formerHost) isRenewed(t *testing.T) {
	result, _ := h.mustResult(h.run("renew", "--identity", cloud.Name))
	certificate := h.signRequest(result.Facts.Identities[cloud.Name].Request)
	result, steps := h.mustResult(h.run("renew", "--identity", cloud.Name, "--identity-certificate", cloud.Name+":"+certificateWord(certificate)))
	if len(result.Plan.Needs) > 0 || !slices.Equal(steps, []string{"InstallCertificate " + cloud.CommonName}) {
		t.Errorf("needs %v, steps %v", result.Plan.Needs, steps)
	}
}

func (h *formerHost) isKept(t *testing.T) {
	own := h.program
	result := h.upgradeTo(platforms[h.platform](h.nextSpec()))
	h.program = own
	if result.NoRollbackReason != "" || result.Facts.RollbackTarget != h.digest || result.Facts.RollbackAgent != hexDigest(agentProgram) {
		t.Fatalf("fallback %q of the agent %q: %s", result.Facts.RollbackTarget, result.Facts.RollbackAgent, result.NoRollbackReason)
	}
	if kept, err := h.Drive().ReadFile(nodespec.RollbackTargetPath); err != nil || !bytes.Equal(kept, h.spec) {
		t.Errorf("it was changed (%v)", err)
	}
}

func (h *formerHost) isRolledBack(t *testing.T) {
	agent := nodespec.AgentPath(h.readFacts(t).RollbackAgent)
	result, steps := h.mustResult(h.runFrom(agent, "rollback"))
	if slices.ContainsFunc(steps, func(step string) bool { return strings.HasPrefix(step, "InstallRelease") }) {
		t.Errorf("steps %v", steps)
	}
	if result.Facts.Applied != h.digest || result.Facts.RollbackTarget != "" || len(result.Plan.Needs) > 0 {
		t.Errorf("applied %s, fallback %q, needs %v", result.Facts.Applied, result.Facts.RollbackTarget, result.Plan.Needs)
	}
	if data, err := h.Drive().ReadFile(nodespec.SpecPath); err != nil || !bytes.Equal(data, h.spec) {
		t.Errorf("the NodeSpec was changed (%v)", err)
	}
	if data, _ := h.Drive().ReadFile(`C:\k\kubelet.conf`); string(data) != "kind: KubeletConfiguration\n" || h.hasPaths(`C:\k\registration`) {
		t.Errorf("the files are not what they were: %s", data)
	}
	service, _ := h.Service(nodespec.ServiceAgent)
	if !strings.HasPrefix(service.CommandLine, agent) {
		t.Errorf("the service runs %s", service.CommandLine)
	}
	h.checkVerified(h.runFrom(nodespec.AgentPath(h.readFacts(t).AppliedAgent), "verify"))
	if !h.hasPaths(nodespec.AgentPath(hexDigest(h.program))) {
		t.Error("the later agent must be sent again")
	}
}

func (h *formerHost) isRemoved(*testing.T) {
	h.removeNode()
	compareSnapshots(h.T, h.before, h.Snapshot())
}

func (h *formerHost) readFacts(t *testing.T) plan.Facts {
	t.Helper()
	result, _ := h.mustResult(h.run("facts"))
	return *result.Facts
}
