package instance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func TestActivate_ReportsAdvisoryFailures(t *testing.T) {
	advise := func(failed ...string) (text string, recorded []string) {
		recorder := events.NewFakeRecorder(len(failed))
		p, spec, verified := activatePhase{events: status.NewRecorder(recorder)}, nodespec.NodeSpec{}, &agentapi.Result{}
		for _, each := range failed {
			name, message, _ := strings.Cut(each, ": ")
			spec.Checks = append(spec.Checks, nodespec.Check{Name: name, Advisory: true})
			verified.Checks = append(verified.Checks, agentapi.CheckResult{Name: name, Message: message})
		}
		s := scope.New(&v1alpha1.WindowsInstance{}, &scope.Session{}, &hostjobs.Host{Known: hostjobs.Known{Verified: verified}}, nil)
		text = p.reportAdvisoryFailures(s, spec)
		p.events.Flush()
		close(recorder.Events)
		for line := range recorder.Events {
			recorded = append(recorded, line)
		}
		return text, recorded
	}
	t.Run("a node that passed all checks is Ready without more words", func(t *testing.T) {
		if text, recorded := advise(); text != "" || len(recorded) > 0 {
			t.Errorf("got %q and events %q", text, recorded)
		}
	})
	t.Run("a failed check is in the condition's message, and an event", func(t *testing.T) {
		text, recorded := advise("AntivirusExclusions: scans containerd.exe")
		if text != " But AntivirusExclusions: scans containerd.exe." {
			t.Errorf("the message goes on with %q", text)
		}
		if len(recorded) != 1 || !strings.Contains(recorded[0], "AdvisoryCheckFailed") ||
			!strings.Contains(recorded[0], "scans containerd.exe") {
			t.Errorf("the events are %q", recorded)
		}
	})
	t.Run("what a check says at length only the event has whole", func(t *testing.T) {
		text, recorded := advise("AntivirusExclusions: " + strings.Repeat("policy ", 60) + "end")
		if len(text) > maxAdviceLength+len(" But .") || !strings.HasSuffix(text, "….") {
			t.Errorf("the message goes on with %d bytes: %q", len(text), text)
		}
		if len(recorded) != 1 || !strings.Contains(recorded[0], "policy end") {
			t.Errorf("the events are %q", recorded)
		}
	})
	t.Run("a known fault of the host's build is in the condition's message", func(t *testing.T) {
		instance := &v1alpha1.WindowsInstance{}
		instance.Status.Host = &v1alpha1.HostStatus{Build: "10.0.20348.2600"}
		host := &hostjobs.Host{Known: hostjobs.Known{Verified: &agentapi.Result{}}}
		text := activatePhase{}.reportAdvisoryFailures(scope.New(instance, &scope.Session{}, host, nil), nodespec.NodeSpec{})
		if !strings.HasPrefix(text, " But with build 10.0.20348.2600") || !strings.HasSuffix(text, "(KB5044281) or later fixes this.") {
			t.Errorf("the message goes on with %q", text)
		}
	})
}

func TestActivate_WaitsForCloudControllerManager(t *testing.T) {
	x, h, _ := hostToJoin(t, "None")
	x.registerNode(corev1.Taint{Key: v1alpha1.TaintUninitialized, Value: "true", Effect: corev1.TaintEffectNoSchedule})
	instance := x.reconcileUntil("the wait", hasSummary(v1alpha1.ReasonNodeNotInitialized))
	condition := expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNodeNotInitialized)
	if !strings.Contains(condition.Message, v1alpha1.TaintUninitialized) ||
		!strings.Contains(condition.Message, "cloud controller manager") ||
		!strings.Contains(instance.Status.NextAction, "openshift-cloud-controller-manager") {
		t.Errorf("it says %q, %q", condition.Message, instance.Status.NextAction)
	}
	if node := x.getNode(); node.Annotations[v1alpha1.AnnotationVersion] != "" ||
		!strings.Contains(strings.Join(formatTaints(node), " "), v1alpha1.TaintNotReady) {
		t.Errorf("the node was released: taints %q", formatTaints(node))
	}
	execs, recorded := len(h.agentCommands()), x.popEvents()
	instance, after := x.reconcile()
	if instance.Status.Summary != v1alpha1.ReasonNodeNotInitialized || after != 0 || len(h.agentCommands()) != execs {
		t.Errorf("it is %s, looks again after %s, and has run %q", instance.Status.Summary, after, h.agentCommands()[execs:])
	}
	for _, line := range recorded {
		if strings.Contains(line, v1alpha1.ReasonNodeNotInitialized) {
			t.Errorf("a wait is reported as a failure: %s", line)
		}
	}
	if !x.changeAsOtherWriter(withoutTaint(v1alpha1.TaintUninitialized)) {
		t.Error("the end of the taint does not wake the instance")
	}
	instance, _ = x.reconcile()
	expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
}

// A kubelet registers with the start-up taint of the release that configured it, including during an upgrade of
// the operator.
func TestActivate_RemovesStartupTaintOfAnyRelease(t *testing.T) {
	for name, keys := range map[string][]string{
		"that of this release":       {v1alpha1.TaintNotReady},
		"that of a former release":   {v1alpha1.TaintNotReadyFormer},
		"those of both, one by hand": {v1alpha1.TaintNotReadyFormer, v1alpha1.TaintNotReady},
	} {
		t.Run(name, func(t *testing.T) {
			x, _, _ := hostToJoin(t, "None")
			x.registerNode()
			node := x.getNode()
			node.Spec.Taints = []corev1.Taint{windowsTaint}
			for _, key := range keys {
				node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
			}
			if err := x.Client.Update(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			x.reconcileUntil("a Ready node", hasSummary(v1alpha1.ReasonReady))
			if got := formatTaints(x.getNode()); !slices.Equal(got, []string{"os=Windows:NoSchedule"}) {
				t.Errorf("taints are %q", got)
			}
			if recorded := strings.Join(x.popEvents(), "\n"); !strings.Contains(recorded, "NodeReady") {
				t.Errorf("the Node was not new to the operator; events are\n%s", recorded)
			}
		})
	}
}

// When a node becomes Ready, the kubelet and the node lifecycle controller also write to the Node.
func TestActivate_DecidesAgainAfterConflict(t *testing.T) {
	for name, c := range map[string]struct {
		conflicts int
		meanwhile func(*corev1.Node)
		condition metav1.ConditionStatus
		reason    string
	}{
		"it is taken into service": {maxConflicts, func(*corev1.Node) {}, metav1.ConditionTrue, v1alpha1.ReasonSucceeded},
		"it is not taken into service when it is not Ready any more": {1, func(n *corev1.Node) {
			n.Status.Conditions = nil
		}, metav1.ConditionFalse, v1alpha1.ReasonNodeNotReady},
		"it is not taken into service when it is to be initialized": {1, func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: v1alpha1.TaintUninitialized, Effect: corev1.TaintEffectNoSchedule})
		}, metav1.ConditionFalse, v1alpha1.ReasonNodeNotInitialized},
		"it is taken into service when that has ended": {maxConflicts + 1, func(*corev1.Node) {}, metav1.ConditionTrue, v1alpha1.ReasonSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			x, _, _ := hostToJoin(t, "None")
			x.registerNode(corev1.Taint{Key: v1alpha1.TaintUninitialized, Value: "true", Effect: corev1.TaintEffectNoSchedule})
			x.reconcileUntil("the wait", hasSummary(v1alpha1.ReasonNodeNotInitialized))
			x.changeAsOtherWriter(withoutTaint(v1alpha1.TaintUninitialized))
			api, ok := x.Client.(client.WithWatch)
			if !ok {
				t.Fatalf("it is a %T", x.Client)
			}
			left := c.conflicts
			x.Client = interceptor.NewClient(api, interceptor.Funcs{
				Patch: func(ctx context.Context, to client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					if _, isNode := object.(*corev1.Node); isNode && left > 0 {
						left--
						node := x.getNode()
						c.meanwhile(node)
						spec := node.Spec
						if err := to.Status().Update(ctx, node); err != nil {
							t.Error(err)
						}
						node.Spec = spec
						if err := to.Update(ctx, node); err != nil {
							t.Error(err)
						}
						return apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, object.GetName(), errors.New("it has changed"))
					}
					return to.Patch(ctx, object, patch, options...)
				},
			})
			instance, _ := x.reconcile()
			expectCondition(t, instance, v1alpha1.ConditionReady, c.condition, c.reason)
			if tainted := strings.Contains(strings.Join(formatTaints(x.getNode()), " "), v1alpha1.TaintNotReady); tainted == (c.condition == metav1.ConditionTrue) {
				t.Errorf("its taints are %q", formatTaints(x.getNode()))
			}
		})
	}
}

func TestNotInitialized_AzureNamesCloudNodeManager(t *testing.T) {
	spec := nodespec.NodeSpec{Services: []nodespec.Service{{ServiceConfig: host.ServiceConfig{
		Name: nodespec.ServiceCloudNodeManager}}}}
	o := notInitialized(registeredNode(), spec, "Azure")
	if !strings.Contains(o.Message, "service cloud-node-manager") ||
		!strings.Contains(o.NextAction, `C:\var\log\cloud-node-manager`) || o.Outcome != result.Wait {
		t.Errorf("%+v", o)
	}
}

func TestNotInitialized_VSphereNamesGuestDNSName(t *testing.T) {
	for platform, named := range map[string]bool{"VSphere": true, "AWS": false} {
		o := notInitialized(registeredNode(), nodespec.NodeSpec{}, platform)
		if got := strings.Contains(o.NextAction, "must report "+machine+" as the DNS name of the guest"); got != named {
			t.Errorf("%s: %s", platform, o.NextAction)
		}
	}
}
