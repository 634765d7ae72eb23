package disruption

import (
	"fmt"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

// maxMessageLength is the maximum length of a condition message in bytes, for readability. The API server has a
// higher limit, and refuses the complete status if a message exceeds that limit.
const maxMessageLength = 4096

func disruptionStarted(p *v1alpha1.WindowsDisruptionPolicy, instance *v1alpha1.WindowsInstance,
	d v1alpha1.Disruption) recorder.Event {
	what := "Node " + d.Node + " is being disrupted"
	if d.Machine != "" {
		what = "Machine " + d.Machine + " is being replaced"
	}
	cause := string(d.Cause)
	if d.Cause == v1alpha1.CauseConfiguration && instance != nil {
		cause += ", " + disruptionpolicy.ChangedSettings(instance.Status.ConfigurationDigest, d.ConfigurationDigest)
	}
	return recorder.Normal(instance, p, "DisruptionStarted", "Disrupt",
		fmt.Sprintf("%s, within the WindowsDisruptionPolicy. Cause: %s.", what, cause))
}

// disruptionFailed returns two events: for readers of the policy and of the instance.
func disruptionFailed(p *v1alpha1.WindowsDisruptionPolicy, instance *v1alpha1.WindowsInstance,
	d failedDisruption) []recorder.Event {
	return []recorder.Event{
		recorder.Warning(p, instance, "DisruptionFailed", "Disrupt", d.why),
		recorder.Warning(instance, p, "DisruptionFailed", "Disrupt", d.why),
	}
}

func policyInvalid(p *v1alpha1.WindowsDisruptionPolicy, why string) recorder.Event {
	return recorder.Warning(p, nil, v1alpha1.ReasonDisruptionPolicyInvalid, "ReadPolicy", why)
}

func disruptionsStopped(p *v1alpha1.WindowsDisruptionPolicy, why string) recorder.Event {
	return recorder.Warning(p, nil, "DisruptionsStopped", "Disrupt", why)
}
