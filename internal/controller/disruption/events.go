package disruption

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/disturbance"
)

// longestMessage is what people read of a condition, in bytes. The API server takes more, and refuses the whole status
// for too much.
const longestMessage = 4096

// disruptionEvent is one Kubernetes event, made by the constructors below and nowhere else.
type disruptionEvent struct {
	regarding, related        runtime.Object
	eventType, reason, action string
	message                   string
}

func (g *PolicyGate) emit(e disruptionEvent) {
	if reflect.ValueOf(e.regarding).IsNil() {
		return
	}
	if e.related != nil && reflect.ValueOf(e.related).IsNil() {
		e.related = nil
	}
	g.Events.Eventf(e.regarding, e.related, e.eventType, e.reason, e.action, "%s", e.message)
}

func started(p *v1alpha1.WindowsDisruptionPolicy, instance *v1alpha1.WindowsInstance,
	d v1alpha1.Disruption) disruptionEvent {
	what := "Node " + d.Node + " is being disturbed"
	if d.Machine != "" {
		what = "Machine " + d.Machine + " is being replaced"
	}
	cause := string(d.Cause)
	if d.Cause == v1alpha1.CauseConfiguration && instance != nil {
		cause += ", " + disturbance.ChangedSettings(instance.Status.Configuration, d.Configuration)
	}
	return disruptionEvent{instance, p, corev1.EventTypeNormal, "DisruptionStarted", "Disrupt",
		fmt.Sprintf("%s, within the WindowsDisruptionPolicy. Cause: %s.", what, cause)}
}

// disruptionFailed tells of it twice: to who looks at the policy, and to who looks at the instance.
func disruptionFailed(p *v1alpha1.WindowsDisruptionPolicy, instance *v1alpha1.WindowsInstance,
	d failedDisruption) []disruptionEvent {
	return []disruptionEvent{
		{p, instance, corev1.EventTypeWarning, "DisruptionFailed", "Disrupt", d.why},
		{instance, p, corev1.EventTypeWarning, "DisruptionFailed", "Disrupt", d.why},
	}
}

func policyInvalid(p *v1alpha1.WindowsDisruptionPolicy, why string) disruptionEvent {
	return disruptionEvent{p, nil, corev1.EventTypeWarning, v1alpha1.ReasonDisruptionPolicyInvalid, "ReadPolicy", why}
}

func disruptionsStopped(p *v1alpha1.WindowsDisruptionPolicy, why string) disruptionEvent {
	return disruptionEvent{p, nil, corev1.EventTypeWarning, "DisruptionsStopped", "Disrupt", why}
}
