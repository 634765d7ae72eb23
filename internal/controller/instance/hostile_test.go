package instance

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// countRequests returns the number of certificate requests.
func (x *trial) countRequests() int {
	x.t.Helper()
	list, err := x.clientset.CertificatesV1().CertificateSigningRequests().List(x.t.Context(), metav1.ListOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	return len(list.Items)
}

func linuxNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: "uid-of-" + "linux", Labels: map[string]string{corev1.LabelOSStable: "linux",
			"node-role.kubernetes.io/control-plane": ""},
	}}
}

//
func TestHostileHost_TakenNameGetsNoCertificate(t *testing.T) {
	worker := listedInstance()
	worker.Name, worker.UID = "worker", "other-uid"
	worker.Status.NodeRef = &v1alpha1.NodeReference{Name: "win-7", Confirmed: true}
	for name, c := range map[string]struct {
		hostName string
		owner    client.Object
	}{
		"that of a node of the control plane":   {"MASTER-0", linuxNode("master-0")},
		"that of a Linux node, in another case": {"Worker-3", linuxNode("worker-3")},
		"that of another instance":              {"WIN-7", worker},
		"that of a Windows node which nobody has a record of": {"win-8",
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-8",
				Labels: map[string]string{corev1.LabelOSStable: "windows"}}}},
		"that of a Machine which is being made": {"WINWORKER-9",
			&machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace,
				Name: "winworker-9", UID: "u"}}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t, listedInstance(), c.owner)
			x.facts.Platform = "None"
			h := x.withAgent(func(o *fake.Options) { o.Name = c.hostName })
			before := c.owner.DeepCopyObject().(client.Object)
			for range 3 {
				x.reconcile()
			}
			instance, _ := x.reconcile()
			expectCondition(t, instance, v1alpha1.ConditionJoined, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
			if instance.Status.NodeRef != nil {
				t.Errorf("it still claims %s", instance.Status.NodeRef.Name)
			}
			if n := x.countRequests(); n > 0 {
				t.Errorf("%d certificates were asked for", n)
			}
			if i := slices.IndexFunc(h.agentCommands(), func(verb string) bool { return verb != "facts" }); i >= 0 {
				t.Errorf("the host was told to %s", h.agentCommands()[i])
			}
			if err := x.Client.Get(t.Context(), client.ObjectKeyFromObject(before), before); err != nil ||
				before.GetResourceVersion() != c.owner.GetResourceVersion() {
				t.Errorf("what has the name was touched (%v)", err)
			}
		})
	}
}

// A host with a node keeps that node. Otherwise the node would never be drained and deleted.
func TestHostileHost_RenamedHostKeepsNode(t *testing.T) {
	x := newTrial(t)
	x.facts.Platform = "None"
	x.asNode(listedInstance(), x.key.Hash())
	x.forgetHostKey() // the key of the simulated host is pinned again
	h := x.withAgent(func(o *fake.Options) { o.Name = "MASTER-0" })
	x.breakNode() // so that the operator checks the host
	instance, after := x.reconcile()
	conflict := expectCondition(t, instance, v1alpha1.ConditionJoined, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	if !strings.Contains(conflict.Message, "is Node "+machine) || !strings.Contains(conflict.Message, "master-0") ||
		after != hostRecheckInterval {
		t.Errorf("the message is %q, the next look in %s", conflict.Message, after)
	}
	if ref := instance.Status.NodeRef; ref == nil || ref.Name != machine || !ref.Confirmed || ref.UID == "" {
		t.Errorf("its node is forgotten: %+v", ref)
	}
	if x.countRequests() > 0 || slices.Contains(h.agentCommands(), "apply") {
		t.Errorf("%d certificates were asked for, and the host was told to %q", x.countRequests(), h.agentCommands())
	}
}

// rude contains terminal escapes, bidirectional controls, and characters that break a table row.
const rude = "\x1b[2J\x1b]0;owned\x07\u202eevil\u2066\r\n| a | b |\x00\u200b"

// checkPrintable checks that all texts of an object are safe to print.
func checkPrintable(t *testing.T, what string, object any) {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var texts func(any)
	texts = func(value any) {
		switch value := value.(type) {
		case string:
			if strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%s has %q", what, value)
			}
		case []any:
			for _, element := range value {
				texts(element)
			}
		case map[string]any:
			for name, member := range value {
				texts(name)
				texts(member)
			}
		}
	}
	var decoded any
	if err := json.Unmarshal(data, &decoded); err != nil {
		t.Fatal(err)
	}
	texts(decoded)
}

func TestHostileHost_StatusAndEventsArePrintable(t *testing.T) {
	for name, rewrite := range map[string]func(agentapi.Line) []agentapi.Line{
		"as facts": func(line agentapi.Line) []agentapi.Line {
			if line.Result != nil && line.Result.Facts != nil {
				facts := line.Result.Facts
				system := &facts.System
				for _, text := range []*string{&system.HostName, &system.Product, &system.Edition, &system.MachineID,
					&system.BootID, &system.Domain} {
					*text += rude
				}
				facts.Files = map[string]plan.FileFact{`..\..\..\Windows\System32\evil.dll`: {}, "/etc/passwd": {},
					`\\server\share\x`: {}, rude: {}}
				facts.Payload = map[string]string{strings.Repeat("a", 64): `C:\..\..\x`, "../../x": rude}
				facts.APIServer = &plan.APIServerFacts{URL: rude, Error: rude, Resolved: []string{rude}}
			}
			return []agentapi.Line{line}
		},
		"as steps": func(line agentapi.Line) []agentapi.Line {
			return []agentapi.Line{{Type: agentapi.TypeStep, Step: &agentapi.Step{Name: "Step" + rude, Detail: rude,
				State: agentapi.StepProgress}}, line}
		},
		"as a failure": func(line agentapi.Line) []agentapi.Line {
			if line.Result == nil {
				return []agentapi.Line{line}
			}
			return []agentapi.Line{{Type: agentapi.TypeFailure, Time: line.Time, Failure: &agentapi.Failure{Reason: agentapi.Reason(rude),
				Step: rude, Message: rude}}}
		},
		"as a cloud's answer": func(line agentapi.Line) []agentapi.Line {
			if line.Result != nil && line.Result.Facts != nil {
				line.Result.Facts.CloudName = &plan.CloudNameFacts{Platform: rude, Name: rude, Error: rude}
			}
			return []agentapi.Line{line}
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t, listedInstance())
			x.withHostileAgent(func(line agentapi.Line) []agentapi.Line {
				x.clock.Step(2 * progressInterval) // so that each step is shown
				return rewrite(line)
			})
			for range 3 {
				instance, _ := x.reconcile()
				checkPrintable(t, "the status", instance.Status)
			}
			for _, event := range x.popEvents() {
				checkPrintable(t, "an event", event)
			}
		})
	}
}

// A host that reports no usable address must not break the operator.
func TestHostileHost_MissingAddressReported(t *testing.T) {
	x := newTrial(t, listedInstance())
	x.facts.Platform = "None"
	x.withHostileAgent(func(line agentapi.Line) []agentapi.Line {
		if line.Result != nil && line.Result.Facts != nil {
			line.Result.Facts.System.Addresses = []string{"fe80::1%eth0", "not an address", "../../x"}
		}
		return []agentapi.Line{line}
	})
	for range 3 {
		x.reconcile()
	}
	instance, _ := x.reconcile()
	if instance.Status.Summary == v1alpha1.ReasonReady || !strings.Contains(formatConditions(instance), "has not reported an IPv4 address") {
		t.Errorf("the conditions are %s", formatConditions(instance))
	}
}

// formatConditions returns the messages of the conditions.
func formatConditions(instance *v1alpha1.WindowsInstance) string {
	var messages []string
	for _, condition := range instance.Status.Conditions {
		messages = append(messages, condition.Type+": "+condition.Message)
	}
	return strings.Join(messages, "; ")
}
