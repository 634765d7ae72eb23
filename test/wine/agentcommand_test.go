package wine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/wine"
)

// runAgentCommand runs an agent command with the agent installed on a host, as the operator does.
func runAgentCommand(t *testing.T, h *wine.Host, words string) agentapi.Result {
	t.Helper()
	root, err := h.Path(nodespec.AgentRoot)
	requireNoError(t, err)
	found, err := filepath.Glob(filepath.Join(root, "*", nodespec.AgentProgram))
	requireNoError(t, err)
	if len(found) != 1 {
		t.Fatalf("%d agents lie on %s", len(found), h.Name())
	}
	program := nodespec.AgentRoot + `\` + filepath.Base(filepath.Dir(found[0])) + `\` + nodespec.AgentProgram
	result, err := h.Exec(t.Context(), program+" "+words)
	requireNoError(t, err)
	for text := range strings.Lines(result.Stdout) {
		if line, ok := agentapi.Decode([]byte(text)); ok && line.Result != nil {
			return *line.Result
		}
	}
	t.Fatalf("%s on %s: %+v", words, h.Name(), result)
	return agentapi.Result{}
}

// checkAPIServerFacts checks the host's report about the connectivity to the API server, with real name resolution
// and sockets.
func checkAPIServerFacts(t *testing.T, h *wine.Host) {
	for url, want := range map[string]string{
		"https://" + apiName + ":" + apiPort:          "",
		"https://elsewhere.lab.example.com:6443":      "does not resolve on the host",
		"https://" + apiName + ":1":                   "cannot connect to " + apiName + ":1",
		"https://" + gateway.String() + ":" + apiPort: "",
	} {
		facts := runAgentCommand(t, h, "facts --api-server "+url).Facts.APIServer
		if facts == nil || (facts.Error == "") != (want == "") || !strings.Contains(facts.Error, want) {
			t.Errorf("%s: %+v", url, facts)
			continue
		}
		if known := slices.Equal(facts.Resolved, []string{gateway.String()}); known != !strings.Contains(url, "elsewhere") {
			t.Errorf("%s has the addresses %q", url, facts.Resolved)
		}
	}
}

// checkEmptyPlan checks that a configured host does not differ from its spec.
func checkEmptyPlan(t *testing.T, h *wine.Host) {
	p := runAgentCommand(t, h, "plan --spec "+nodespec.SpecPath).Plan
	if p == nil || len(p.Steps) > 0 || len(p.Needs) > 0 {
		plan, _ := json.Marshal(p)
		t.Errorf("it would do %s", plan)
	}
}

// checkOperatorRestart ends the operator, and checks that the next one does nothing on a host that is already a node.
func (l *lab) checkOperatorRestart(t *testing.T, operator *testenv.Operator, h *wine.Host) {
	services := []string{"containerd", "kubelet", "hybrid-overlay-node", "kube-proxy", nodespec.ServiceAgent}
	running := func() (ids []string) {
		for _, name := range services {
			ids = append(ids, name+" "+processID(t, h, name))
		}
		return ids
	}
	before, uid, boots := running(), l.nodeOf(h).UID, h.Boots()
	requireNoError(t, operator.Stop())
	seen := len(h.Journal())
	l.run()
	// An unused address shows that the new operator has reconciled all instances.
	requireNoError(t, l.SetInstances(l.Context(), map[string]string{l.listKey(h): "username=Administrator",
		gateway.String(): "username=Administrator"}))
	l.waitForInstanceAt(gateway.String(), "to be told to be out of reach", func(instance *v1alpha1.WindowsInstance) bool {
		return instance != nil && instance.Status.Summary == "Unreachable"
	})
	l.list(h)
	l.awaitReady(h)
	for _, e := range h.Journal()[seen:] {
		if e.Kind == wine.KindExec && strings.Contains(e.Detail, nodespec.AgentProgram) {
			t.Errorf("the new operator did %s", e.Detail)
		}
	}
	if after := running(); !slices.Equal(before, after) || h.Boots() != boots || l.nodeOf(h).UID != uid {
		t.Errorf("services %q, were %q; %d boots, were %d", after, before, h.Boots(), boots)
	}
}

// the reason why a host cannot become a node is reported, and the host is not changed.
func TestNode_UnsuitableHostIsUnchanged(t *testing.T) {
	l := newLab(t, "WIN_FIVE")
	h := l.hosts[0]
	before := snapshotOf(t, h)
	keys, err := h.Path(`C:\ProgramData\ssh\administrators_authorized_keys`)
	requireNoError(t, err)
	keyFile, err := os.ReadFile(keys)
	requireNoError(t, err)
	requireNoError(t, os.WriteFile(keys, nil, 0o600))
	l.run()
	l.list(h)
	expectReason := func(reason string) {
		t.Helper()
		l.waitForInstance(h, "to say "+reason, func(instance *v1alpha1.WindowsInstance) bool {
			return instance != nil && instance.Status.Summary == reason
		})
	}
	expectReason("AuthenticationFailed")
	if diff := fileDigests(t, h); diff[`k`] != "" {
		t.Error("something was put on a host that refuses the key")
	}
	requireNoError(t, os.WriteFile(keys, keyFile, 0o600))
	expectReason("HostNameInvalid")
	l.list()
	l.awaitGone(h)
	after := snapshotOf(t, h)
	if !slices.Equal(before.Services, after.Services) || !slices.Equal(before.Firewall, after.Firewall) ||
		!slices.Equal(before.Features, after.Features) || !slices.Equal(before.Networks, after.Networks) {
		t.Errorf("it was changed:\n%+v, was\n%+v", after, before)
	}
	if h.Boots() != 1 {
		t.Errorf("%d boots", h.Boots())
	}
}
